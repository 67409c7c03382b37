"""Foreign tables: DynamoDB tables with composite keys, scanned or exported to S3, as rows of an import."""

# The table of Clade in DynamoDB, with its alarms and its IAM policies. docs/dynamodb.md describes it. Run
# clade table create once after the first deployment.

terraform {
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.0, < 7.0"
    }
  }
}

variable "table_name" {
  type    = string
  default = "clade"
}

variable "tags" {
  type    = map(string)
  default = {}
}

variable "units" {
  type        = object({ read = number, write = number })
  default     = null
  description = "Provisioned units per second; on demand by default"
}

variable "index_units" {
  type        = object({ read = number, write = number })
  default     = null
  description = "Units of each index; those of the table by default"
}

variable "deletion_protection" {
  type    = bool
  default = true
}

variable "point_in_time_recovery" {
  type    = bool
  default = true
}

variable "kms_key_arn" {
  type        = string
  default     = null
  description = "ARN of the KMS key that encrypts the table; a key of DynamoDB by default"

  validation {
    condition     = var.kms_key_arn == null || can(regex("^arn:", var.kms_key_arn))
    error_message = "Terraform needs the ARN of the key, not its alias or id."
  }
}

variable "alarm_topic" {
  type        = string
  default     = null
  description = "ARN of the SNS topic that gets the alarms; none by default"
}

locals {
  index_units = var.units == null || var.index_units == null ? var.units : var.index_units
}

resource "aws_dynamodb_table" "clade" {
  name                        = var.table_name
  billing_mode                = var.units == null ? "PAY_PER_REQUEST" : "PROVISIONED"
  read_capacity               = try(var.units.read, null)
  write_capacity              = try(var.units.write, null)
  hash_key                    = "pk"
  range_key                   = "sk"
  deletion_protection_enabled = var.deletion_protection
  tags                        = var.tags

  attribute {
    name = "parent"
    type = "S"
  }

  attribute {
    name = "pk"
    type = "S"
  }

  attribute {
    name = "rank"
    type = "S"
  }

  attribute {
    name = "sk"
    type = "S"
  }

  attribute {
    name = "tier"
    type = "S"
  }

  global_secondary_index {
    name            = "by_parent"
    hash_key        = "parent"
    range_key       = "rank"
    projection_type = "ALL"
    read_capacity   = try(local.index_units.read, null)
    write_capacity  = try(local.index_units.write, null)
  }

  global_secondary_index {
    name            = "by_level"
    hash_key        = "tier"
    range_key       = "sk"
    projection_type = "ALL"
    read_capacity   = try(local.index_units.read, null)
    write_capacity  = try(local.index_units.write, null)
  }

  ttl {
    attribute_name = "expires"
    enabled        = true
  }

  point_in_time_recovery {
    enabled = var.point_in_time_recovery
  }

  dynamic "server_side_encryption" {
    for_each = var.kms_key_arn == null ? [] : [var.kms_key_arn]

    content {
      enabled     = true
      kms_key_arn = server_side_encryption.value
    }
  }
}

locals {
  alarms = {
    read-throttles = {
      description = "Reads of the table are throttled: raise its capacity, or look for a hot tree."
      metric      = "ReadThrottleEvents"
      dimensions  = [{}, { GlobalSecondaryIndexName = "by_parent" }, { GlobalSecondaryIndexName = "by_level" }]
    }
    write-throttles = {
      description = "Writes of the table are throttled: raise its capacity, or divide a tree that is always written."
      metric      = "WriteThrottleEvents"
      dimensions  = [{}, { GlobalSecondaryIndexName = "by_parent" }, { GlobalSecondaryIndexName = "by_level" }]
    }
    system-errors = {
      description = "DynamoDB fails; Clade retries, and answers UNAVAILABLE if that does not help."
      metric      = "SystemErrors"
      dimensions = [
        { Operation = "BatchGetItem" },
        { Operation = "GetItem" },
        { Operation = "PutItem" },
        { Operation = "Query" },
        { Operation = "Scan" },
        { Operation = "TransactWriteItems" },
      ]
    }
  }

  policies = {
    # A server that does not write, clade tree, clade export.
    reading = [
      "dynamodb:BatchGetItem",
      "dynamodb:GetItem",
      "dynamodb:Query",
    ]
    # A server that writes, clade import, clade demo.
    writing = [
      "dynamodb:BatchGetItem",
      "dynamodb:DeleteItem",
      "dynamodb:GetItem",
      "dynamodb:PutItem",
      "dynamodb:Query",
    ]
    # clade table, clade check, clade repair, clade copy.
    admin = [
      "dynamodb:BatchGetItem",
      "dynamodb:ConditionCheckItem",
      "dynamodb:CreateTable",
      "dynamodb:DeleteItem",
      "dynamodb:DescribeContinuousBackups",
      "dynamodb:DescribeTable",
      "dynamodb:DescribeTimeToLive",
      "dynamodb:GetItem",
      "dynamodb:ListTagsOfResource",
      "dynamodb:PutItem",
      "dynamodb:Query",
      "dynamodb:Scan",
      "dynamodb:TagResource",
      "dynamodb:UpdateContinuousBackups",
      "dynamodb:UpdateTimeToLive",
    ]
  }
}

# An alarm is raised when its sum is above 0 in 3 of the latest 5 minutes: retries absorb a short peak.
resource "aws_cloudwatch_metric_alarm" "clade" {
  for_each = local.alarms

  alarm_name          = "${var.table_name}-${each.key}"
  alarm_description   = each.value.description
  comparison_operator = "GreaterThanThreshold"
  threshold           = 0
  evaluation_periods  = 5
  datapoints_to_alarm = 3
  treat_missing_data  = "notBreaching"
  alarm_actions       = var.alarm_topic == null ? [] : [var.alarm_topic]

  metric_query {
    id          = "total"
    expression  = "SUM(METRICS())"
    label       = each.key
    return_data = true
  }

  dynamic "metric_query" {
    for_each = each.value.dimensions

    content {
      id          = "m${metric_query.key + 1}"
      return_data = false

      metric {
        namespace   = "AWS/DynamoDB"
        metric_name = each.value.metric
        dimensions  = merge({ TableName = aws_dynamodb_table.clade.name }, metric_query.value)
        period      = 60
        stat        = "Sum"
      }
    }
  }
}

resource "aws_iam_policy" "clade" {
  for_each = local.policies

  name        = "${var.table_name}-${each.key}"
  description = "Table of Clade: ${each.key}"
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Sid      = "Table"
        Effect   = "Allow"
        Action   = each.value
        Resource = aws_dynamodb_table.clade.arn
      },
      {
        Sid      = "Indexes"
        Effect   = "Allow"
        Action   = ["dynamodb:Query"]
        Resource = [for index in ["by_parent", "by_level"] : "${aws_dynamodb_table.clade.arn}/index/${index}"]
      },
    ]
  })
}

output "table_arn" {
  value = aws_dynamodb_table.clade.arn
}

output "policy_arns" {
  value = { for use, policy in aws_iam_policy.clade : use => policy.arn }
}

"""cfn-lint on a template: its errors and warnings."""

from cfnlint.api import lint_all


def findings(template: str) -> list[str]:
    """Errors and warnings of a template in JSON or YAML; information and experimental rules are left out."""
    return [str(found) for found in lint_all(template) if found.rule.id[0] in "EW"]

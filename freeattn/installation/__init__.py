"""What is installed here, and does it work? Nothing heavy is imported: what may be broken is tried in processes."""

from __future__ import annotations

from freeattn.installation.examine import Installation, Package, examine
from freeattn.installation.requirements import Requirement, declared_requirements

__all__ = ["Installation", "Package", "Requirement", "declared_requirements", "examine"]

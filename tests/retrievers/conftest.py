"""What the tests of several retrievers have."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def aws_keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Credentials of Amazon's that are none, and no others."""
    nowhere = str(tmp_path / "none")
    values = {
        "ACCESS_KEY_ID": "AKIACANARY0123456789",
        "SECRET_ACCESS_KEY": "canary0123456789abcdefghijklmnopqrstuvwx",
        "SESSION_TOKEN": "canary/session+token==0123456789abcdef",
        "EC2_METADATA_DISABLED": "true",
        "CONFIG_FILE": nowhere,
        "SHARED_CREDENTIALS_FILE": nowhere,
    }
    for name, value in values.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    for name in (
        "AWS_REGION",
        "AWS_DEFAULT_REGION",
        "AWS_PROFILE",
        "AWS_BEARER_TOKEN_BEDROCK",
    ):
        monkeypatch.delenv(name, raising=False)

"""The table of an agent to the agent."""

from collections.abc import Mapping

from harness.experiment.agent_config import AgentConfig
from retrievers.agents.agent import Agent
from retrievers.agents.dialogue import DialogueLimits
from retrievers.agents.tool_model import ToolModel
from retrievers.agents.toolbox import Toolbox
from retrievers.types import Retriever


def build_agent(config: AgentConfig, searches: Mapping[str, Retriever]) -> Agent:
    """Build an agent; nothing is sent.

    Args:
        config: its table.
        searches: name -> retriever, for this agent alone: it asks them its own queries.
    """
    model = ToolModel(
        model=config.model,
        base_url=config.base_url,
        key_name=config.key_name,
        max_tokens=config.max_tokens,
        temperature=config.temperature,
        concurrency=config.concurrency,
        rpm=config.rpm,
        tpm=config.tpm,
        timeout=config.timeout,
        patience=config.patience,
        input_price=config.input_price,
        output_price=config.output_price,
    )
    limits = DialogueLimits(config.calls, config.tokens, config.max_tokens)
    return Agent(model, Toolbox(searches, config.tools, config.hits), limits)

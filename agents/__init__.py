"""Doing: plans, workers, and the tools that they call."""

from callsheet.agents.a2a import A2AAgent
from callsheet.agents.answer import synthesize
from callsheet.agents.approval import check_answerable, supervised
from callsheet.agents.assurance import ApprovalPolicy, Assurance
from callsheet.agents.background import BackgroundLoop
from callsheet.agents.bound import BoundTool, unsettled
from callsheet.agents.brief import Brief, Offer
from callsheet.agents.checkpoints import checkpointer, in_threads
from callsheet.agents.decisions import AnswerError, Decision, Verdict
from callsheet.agents.judge import Judged, judge_proposals
from callsheet.agents.keyless import KeylessModel
from callsheet.agents.limits import Limits
from callsheet.agents.model_output import normalize, unstreamed
from callsheet.agents.models import ModelError, chat_model
from callsheet.agents.plan import Call, Plan, Step, StepResult
from callsheet.agents.planner import decompose
from callsheet.agents.prompts import Prompts
from callsheet.agents.registry import Guard, ToolRegistry
from callsheet.agents.requests import ToolRequests
from callsheet.agents.sessions import SessionPool
from callsheet.agents.sole_run import ConcurrentRunError
from callsheet.agents.watched_call import Supervision
from callsheet.agents.worker import Equipment, carry_out, worker

__all__ = [
    "A2AAgent",
    "AnswerError",
    "ApprovalPolicy",
    "Assurance",
    "BackgroundLoop",
    "BoundTool",
    "Brief",
    "Call",
    "ConcurrentRunError",
    "Decision",
    "Equipment",
    "Guard",
    "Judged",
    "KeylessModel",
    "Limits",
    "ModelError",
    "Offer",
    "Plan",
    "Prompts",
    "SessionPool",
    "Step",
    "StepResult",
    "Supervision",
    "ToolRegistry",
    "ToolRequests",
    "Verdict",
    "carry_out",
    "chat_model",
    "check_answerable",
    "checkpointer",
    "decompose",
    "in_threads",
    "judge_proposals",
    "normalize",
    "supervised",
    "synthesize",
    "unsettled",
    "unstreamed",
    "worker",
]

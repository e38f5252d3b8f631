"""The cost of GPUs that a part of one blocks: pods request whole GPUs, and only models of one service share them."""

from collections.abc import Mapping

from rayhelm.planner.placement.inventory import PoolInventory
from rayhelm.planner.plan import ModelPlan, Plan
from rayhelm.planner.reason import Reason

__all__ = ["add_blocked_shares", "leave_out_blocked_shares"]


def add_blocked_shares(
    plans: Mapping[str, ModelPlan], inventories: Mapping[str, PoolInventory]
) -> dict[str, ModelPlan]:
    """Return the plans with the price of what they block, divided by what each model uses of shared GPUs."""
    changed = dict(plans)
    for name, inventory in inventories.items():
        for service, blocked in inventory.idle_shares.items():
            sharing = [
                plan
                for plan in plans.values()
                if plan.pool == name and plan.service == service and plan.gpu_fraction < 1
            ]
            used = sum(plan.gpus for plan in sharing)
            if inventory.price is None or not used:
                continue
            for plan in sharing:
                gpus = blocked * plan.gpus / used
                changed[plan.model] = _set_blocked(plan, round(gpus, 4), gpus * inventory.price)
    return changed


def leave_out_blocked_shares(plan: Plan) -> Plan:
    """Return the plan with prices of what its models use, to compare them with shapes that were not placed."""
    models = {name: _set_blocked(model, 0.0, 0.0) for name, model in plan.models.items()}
    return plan.model_copy(update={"models": models})


def _set_blocked(plan: ModelPlan, gpus: float, price: float) -> ModelPlan:
    """Return the plan with these blocked GPUs, in whole ones, and their price per hour."""
    before = plan.price_per_hour
    if before is None or (not price and not plan.blocked_price_per_hour):
        return plan
    after, tokens = before - plan.blocked_price_per_hour + price, plan.price_per_million_output_tokens
    return plan.model_copy(
        update={
            "blocked_price_per_hour": round(price, 4),
            "price_per_hour": round(after, 4),
            "price_per_million_output_tokens": round(tokens * after / before, 4) if tokens and before else tokens,
            "reasons": tuple(_explain(reason, plan.service, gpus, after) for reason in plan.reasons),
        }
    )


def _explain(reason: Reason, service: str, gpus: float, price: float) -> Reason:
    if reason.decision != "price_per_hour" or not gpus:
        return reason
    because = f"{reason.because}; {gpus:.4g} more are blocked: only models of service `{service}` can use the rest"
    return reason.model_copy(update={"chosen": f"{price:.2f} USD", "because": because})

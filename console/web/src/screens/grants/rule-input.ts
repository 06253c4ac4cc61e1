import type {AuthRule, AuthRuleInputWritable} from '@idplatform/sdk';

/** input is what makes the same rule again. A resource is named by its id alone. */
export function input(r: AuthRule): AuthRuleInputWritable {
  return {
    application_id: r.application_id,
    type: r.type,
    affect: r.affect,
    actions: r.actions,
    condition: r.condition,
    description: r.description,
    valid_from: r.valid_from,
    valid_to: r.valid_to,
    resource_match_all_resources: r.resource_match_all_resources,
    resource_match_all_actions: r.resource_match_all_actions,
    ...(r.resource_id
      ? {resource_id: r.resource_id}
      : r.resource_set_id
        ? {resource_set_id: r.resource_set_id}
        : {code: r.code || undefined}),
  };
}

// Records of kinds that are parts of nothing.

package plan

import (
	"context"
	"maps"
)

func (l *Actual) readConnections(ctx context.Context, scope Scope) error {
	if !scope.has(connection) && !scope.has(application) {
		return nil
	}
	var list []map[string]any
	if err := l.platform.Get(ctx, "/v1/idp/connections", nil, &list); err != nil {
		return err
	}
	for _, raw := range list {
		if _, err := l.add(connection, raw, nil); err != nil {
			return err
		}
	}
	return nil
}

func (l *Actual) readSubscriptions(ctx context.Context, scope Scope) error {
	if !scope.has(subscription) {
		return nil
	}
	for raw, err := range l.platform.Each(ctx, "/v1/event-subscriptions", nil) {
		if err != nil {
			return err
		}
		if delivery, is := raw["delivery"].(map[string]any); is {
			raw["delivery"] = chosen(delivery)
		}
		if _, err := l.add(subscription, raw, nil); err != nil {
			return err
		}
	}
	return nil
}

// chosen are the members of a delivery that callers choose. The platform makes the others: all of NATS, and what is
// kept of a former secret.
func chosen(delivery map[string]any) map[string]any {
	if delivery["type"] == "nats" {
		return map[string]any{"type": "nats"}
	}
	out := maps.Clone(delivery)
	for _, name := range []string{"previous_secret", "previous_until", "subject", "user"} {
		delete(out, name)
	}
	return out
}

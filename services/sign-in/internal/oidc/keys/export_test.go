package keys

import "context"

// Reread reads a tenant's rings again, as a replica does after a minute.
func Reread(ctx context.Context, k *Keys) error {
	h := k.of(ctx)
	h.mu.Lock()
	defer h.mu.Unlock()
	return k.fill(ctx, h, 0)
}

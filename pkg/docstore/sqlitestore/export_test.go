package sqlitestore

// Forget drops what the engine keeps of searches.
func (e *Engine) Forget() { e.memory.entries.InvalidateAll() }

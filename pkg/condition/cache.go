package condition

import "github.com/maypok86/otter/v2"

// cachedText is how many bytes of conditions an Environment keeps compiled; each takes some hundred bytes for one of text.
const cachedText = 128 << 10

// compiled keeps faults too: a text that is wrong stays wrong.
type compiled struct {
	program *Program
	err     error
}

func newCache() *otter.Cache[string, compiled] {
	return otter.Must(&otter.Options[string, compiled]{
		MaximumWeight: cachedText,
		Weigher:       func(text string, _ compiled) uint32 { return uint32(len(text)) + 64 },
		Executor:      func(task func()) { task() }, // no goroutines, which nobody could stop
	})
}

// Cached is Compile for stored conditions: it remembers those that are asked for often, up to a bound.
func (e *Environment) Cached(text string) (*Program, error) {
	if len(text) > MaxLength {
		return e.Compile(text) // only says so
	}
	c, ok := e.programs.GetIfPresent(text)
	if !ok {
		c.program, c.err = e.Compile(text)
		e.programs.Set(text, c)
	}
	return c.program, c.err
}

package condition

import "github.com/idplatform/idplatform/pkg/cache"

// cachedText bounds the texts of the conditions that an Environment keeps compiled, in bytes. A compiled condition
// takes about a hundred bytes for each byte of its text.
const cachedText = 128 << 10

// compiled keeps the error too, so that a faulty text is not compiled again and again.
type compiled struct {
	program *Program
	err     error
}

func newCache() *cache.Cache[string, compiled] {
	return cache.NewWeighed(cachedText, func(text string, _ compiled) int { return len(text) + 64 })
}

// Cached is Compile with a bounded cache. Use it for stored conditions, which are evaluated often.
func (e *Environment) Cached(text string) (*Program, error) {
	if len(text) > MaxLength {
		return e.Compile(text) // returns the error about the length
	}
	c, ok := e.programs.Get(text)
	if !ok {
		c.program, c.err = e.Compile(text)
		e.programs.Set(text, c)
	}
	return c.program, c.err
}

// Package toggle names the values of on/off members.
package toggle

// The values.
const (
	On  = "1"
	Off = "0"
)

package permissions_test

import "time"

// What a test waits for comes by NATS, in milliseconds where the machine is not busy.
const (
	waitFor = 30 * time.Second
	tick    = 5 * time.Millisecond
)

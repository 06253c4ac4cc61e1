package permissions_test

import "time"

// Tests wait for messages of NATS, which take milliseconds if the machine is not busy.
const (
	waitFor = 30 * time.Second
	tick    = 5 * time.Millisecond
)

// Package stream reads the platform's events. They are in one stream of JetStream, where the outbox's relay puts them
// (package bus), each at a place: a number that grows.
//
//	             Log: one for each program. It follows the end of the stream,
//	stream ────▶ and has the newest events in memory
//	               ├─▶ Reader: all events, with a place in the store, such as the audit log and triggers
//	               ├─▶ Consumer: events that one replica of a service handles, such as cascades
//	               │     waits ──▶ handled
//	               │       ▲          │ fails 10 times
//	               │       └─ retry ──┴──▶ parked in the dead letters
//	               ├─▶ Read, Changed: readers with places of their own, such as webhooks
//	               ├─▶ Page, Watch: clients that follow the events over HTTP, with a Cursor
//	               └─▶ Follower: state that every replica has in memory
//	                     snapshot ──▶ catching up ──▶ ready
//	                        ▲                           │
//	                        └── the stream has lost ────┘
//	                            events it has not seen
//
// # What it promises
//
//   - kill -9: a Reader's place is in the store, best in the transaction that stores what it has made of the events
//     (Store); else the events of the last seconds come again (Handle). A Consumer is such a Reader: its place is the
//     one before the oldest event that is not handled, and the events after that one come again. A Follower begins
//     again with a snapshot.
//   - Two replicas: one of them gets a Consumer's or a Reader's events. Another continues a few seconds after that one
//     has stopped, or ten seconds after it died. Each has a Log and Followers of its own.
//   - NATS that is away: nothing waits for it. The Log, Consumers and Followers continue where they stopped. A
//     Follower says how old its state is (Age).
//   - A server that has lost its newest events, or a stream that is made anew: the Log counts a reset. Followers take a
//     snapshot, Readers and Consumers find their places again, and a Cursor with another event at its place is
//     refused. Who reads with Read compares Resets.
//   - Events that the stream no longer has: Read returns GoneError, and Followers take a snapshot. Read for all tenants
//     leaves out those that were dropped because one tenant had used up its share.
//   - A slow reader delays only itself: it reads from the stream what is no longer in memory. In a Consumer the tenants
//     take turns among the 256 events that it holds at most; while it holds so many, such as of a record whose first
//     event fails, it reads no others.
//   - Order: the events of one record come in their order, to everybody.
//
// # Words
//
// A place is an event's number in the stream. An epoch identifies the stream, since a stream that is made anew has
// other events at its places. A Cursor is both as text, with a mark of the event there. A reset is when the events
// after a place may be others than those that a reader expects.
//
// # Use
//
//	follower, err := log.Follow(ctx, stream.FollowerConfig{
//		Name:     "clients",
//		Types:    stream.Types{"application.*"},
//		Snapshot: func(ctx context.Context) error { return clients.load(ctx) },
//		Handle:   func(ctx context.Context, e stream.Event) error { return clients.apply(e) },
//	})
//
// A service lists its Followers, Readers and Consumers in service.App, which starts them.
package stream

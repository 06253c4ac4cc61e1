package embedded

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	rewindTimeout = 30 * time.Second
	consumerState = "o.dat" // how JetStream calls the file
)

// rewind sets back each consumer that is further than its stream. A power cut can leave such a one: the stream's newest messages were
// not on the disk, what the consumer knew of them was. The next messages get the lost ones' numbers, and the consumer would take them
// for handled. Nothing can be published before rewind has returned.
func (s *Server) rewind(started *server.Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), rewindTimeout)
	defer cancel()
	nc, err := nats.Connect("", nats.InProcessServer(started), nats.NoReconnect())
	if err != nil {
		return fmt.Errorf("embedded NATS: look at the consumers: %w", err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return fmt.Errorf("embedded NATS: look at the consumers: %w", err)
	}
	streams, moved := js.ListStreams(ctx), false
	for info := range streams.Info() {
		n, err := s.rewindConsumers(ctx, js, info.Config.Name)
		if err != nil {
			return fmt.Errorf("embedded NATS: the consumers of %s: %w", info.Config.Name, err)
		}
		moved = moved || n
	}
	if err := streams.Err(); err != nil {
		return fmt.Errorf("embedded NATS: look at the consumers: %w", err)
	}
	if !moved {
		return nil
	}
	// After another power cut the streams may have grown past the old places, and nobody could tell any more.
	if err := new(synced).walk(ctx, s.config.StoreDir, func(name string) bool { return name == consumerState }); err != nil {
		return fmt.Errorf("embedded NATS: sync the consumers: %w", err)
	}
	return nil
}

func (s *Server) rewindConsumers(ctx context.Context, js jetstream.JetStream, name string) (moved bool, err error) {
	stream, err := js.Stream(ctx, name)
	if err != nil {
		return false, err
	}
	last := stream.CachedInfo().State.LastSeq
	consumers := stream.ListConsumers(ctx)
	for c := range consumers.Info() {
		if c.Delivered.Stream <= last && c.AckFloor.Stream <= last {
			continue
		}
		next := min(c.AckFloor.Stream, last) + 1
		s.config.Log.Warn("a consumer was further than the events that were on the disk, and is set back", "stream", name,
			"consumer", c.Name, "last", last, "delivered", c.Delivered.Stream, "acknowledged", c.AckFloor.Stream)
		if _, err := stream.ResetConsumerToSequence(ctx, c.Name, next); err != nil {
			return false, fmt.Errorf("set %s back: %w", c.Name, err)
		}
		moved = true
	}
	return moved, consumers.Err()
}

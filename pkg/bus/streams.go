package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// The streams of the platform.
const (
	EventStream      = "IDP_EVENTS"
	DeadLetterStream = "IDP_DEADLETTERS"
)

const (
	eventsPrefix    = "idp.events."
	keepEvents      = 7 * 24 * time.Hour
	keepDeadLetters = 90 * 24 * time.Hour
	duplicateWindow = 2 * time.Minute
)

// EnsureStreams makes the platform's streams or brings them to this configuration; what an operator set besides stays. If NATS is
// there they are when it returns. Otherwise it goes on in the background, as it does after each reconnect, until Close; Ready tells
// why they are not there yet. To be called once.
func (b *Bus) EnsureStreams(ctx context.Context) {
	err := errors.New("NATS is away")
	if b.nats.IsConnected() {
		err = b.ensureStreams(ctx)
	}
	b.noteStreams(err)
	b.running.Go(func() {
		for b.background.Err() == nil {
			b.keepStreams()
		}
	})
}

// keepStreams ensures the streams once for a connection: it may be to a NATS that has lost its disk.
func (b *Bus) keepStreams() {
	connected, cancel, err := b.link.wait(b.background)
	if err != nil {
		return
	}
	defer cancel()
	wait := patience()
	for connected.Err() == nil {
		err := b.ensureStreams(connected)
		b.noteStreams(err)
		if err == nil {
			<-connected.Done()
			return
		}
		pause(connected, wait.NextBackOff())
	}
}

// noteStreams logs a change for the worse, not every try.
func (b *Bus) noteStreams(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil && b.streams == nil && b.background.Err() == nil {
		b.log.Warn("the event streams are not there; trying on", "error", err)
	}
	b.streams = err
}

func (b *Bus) ensureStreams(ctx context.Context) error {
	maxAge := b.config.MaxAge
	if maxAge == 0 {
		maxAge = keepEvents
	}
	for _, want := range []jetstream.StreamConfig{
		{Name: EventStream, Subjects: []string{eventsPrefix + ">"}, MaxAge: maxAge,
			Description: "Events of the platform: idp.events.<tenant>.<entity>.<action>, CloudEvents in JSON"},
		{Name: DeadLetterStream, Subjects: []string{deadLettersPrefix + ">"}, MaxAge: keepDeadLetters, AllowDirect: true,
			Description: "Events that a consumer could not handle, and those of them that are replayed"},
	} {
		want.Storage, want.Duplicates, want.Replicas = jetstream.FileStorage, duplicateWindow, max(1, b.config.Replicas)
		if err := b.ensureStream(ctx, want); err != nil {
			return fmt.Errorf("stream %s: %w", want.Name, err)
		}
	}
	return nil
}

func (b *Bus) ensureStream(ctx context.Context, want jetstream.StreamConfig) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	stream, err := b.js.Stream(ctx, want.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		_, err = b.js.CreateStream(ctx, want)
		if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			return nil // another replica was faster
		}
		return err
	}
	if err != nil {
		return err
	}
	have := stream.CachedInfo().Config
	if have.MaxAge == want.MaxAge && have.Replicas == want.Replicas && have.Duplicates == want.Duplicates &&
		len(have.Subjects) == 1 && have.Subjects[0] == want.Subjects[0] && have.AllowDirect == want.AllowDirect {
		return nil
	}
	have.MaxAge, have.Replicas, have.Duplicates = want.MaxAge, want.Replicas, want.Duplicates
	have.Subjects, have.AllowDirect = want.Subjects, want.AllowDirect
	_, err = b.js.UpdateStream(ctx, have)
	return err
}

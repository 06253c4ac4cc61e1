package embedded

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"path"

	"github.com/klauspost/compress/s2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats-server/v2/server/archive"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Backup copies all streams as they were at one moment, which Cut chooses, while they are used. Messages have their
// places and times in the copy. Durable consumers are in it as they were when StartBackup was called, that is, with
// acknowledgements from before the moment: whoever restores the copy gets some messages again, and misses none. A
// snapshot by JetStream itself would have its moment when it begins and the consumers' acknowledgements from later.
type Backup struct {
	nats    *nats.Conn
	js      jetstream.JetStream
	Streams []*StreamBackup
}

// StreamBackup is a stream in a Backup.
type StreamBackup struct {
	Name string
	Info *jetstream.StreamInfo // at the moment of Cut

	consumers []*jetstream.ConsumerInfo
}

// StartBackup notes the streams and their consumers.
func (s *Server) StartBackup(ctx context.Context) (b *Backup, err error) {
	b = &Backup{}
	defer func() {
		if err != nil {
			b.Close()
			err = fmt.Errorf("embedded NATS: backup: %w", err)
		}
	}()
	if b.nats, err = nats.Connect("", nats.InProcessServer(s), nats.Name("backup")); err != nil {
		return b, err
	}
	if b.js, err = jetstream.New(b.nats); err != nil {
		return b, err
	}
	streams := b.js.ListStreams(ctx)
	for info := range streams.Info() {
		stream, err := b.js.Stream(ctx, info.Config.Name)
		if err != nil {
			return b, err
		}
		part := &StreamBackup{Name: info.Config.Name}
		consumers := stream.ListConsumers(ctx)
		for c := range consumers.Info() {
			if c.Config.Durable != "" {
				part.consumers = append(part.consumers, c)
			}
		}
		if err := consumers.Err(); err != nil {
			return b, err
		}
		b.Streams = append(b.Streams, part)
	}
	return b, streams.Err()
}

// Cut makes this the moment of the backup.
func (b *Backup) Cut(ctx context.Context) error {
	for _, s := range b.Streams {
		stream, err := b.js.Stream(ctx, s.Name)
		if err != nil {
			return fmt.Errorf("embedded NATS: backup of %s: %w", s.Name, err)
		}
		s.Info = stream.CachedInfo()
	}
	return nil
}

// Close ends the backup.
func (b *Backup) Close() {
	if b.nats != nil {
		b.nats.Close()
	}
}

// Write writes a stream in the format in which nats-server 2.15 and newer back up streams, "nats stream backup" too.
// Messages that were removed since Cut are left out.
func (b *Backup) Write(ctx context.Context, s *StreamBackup, to io.Writer) error {
	compressed := s2.NewWriter(to)
	w := archiveWriter{archive.NewWriter(compressed)}
	err := w.begin(s)
	if err == nil {
		err = b.messages(ctx, s, w)
	}
	if err == nil {
		err = w.entry(archive.Header{}, nil) // the end
	}
	if err := errors.Join(err, compressed.Close()); err != nil {
		return fmt.Errorf("embedded NATS: backup of %s: %w", s.Name, err)
	}
	return nil
}

type archiveWriter struct{ *archive.Writer }

func (w archiveWriter) entry(h archive.Header, payload []byte) error {
	if err := w.WriteHeader(&h); err != nil {
		return err
	}
	_, err := w.Write(payload)
	return err
}

func (w archiveWriter) json(name string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return w.entry(archive.Header{Name: name, PayloadSize: int64(len(text))}, text)
}

// begin writes the state of the stream and its consumers. A consumer gets again what it had not acknowledged.
func (w archiveWriter) begin(s *StreamBackup) error {
	state := s.Info.State
	state.Consumers, state.Subjects, state.Deleted = len(s.consumers), nil, nil
	if err := w.json("state.json", state); err != nil {
		return err
	}
	for _, c := range s.consumers {
		floor := server.SequencePair{Consumer: c.AckFloor.Consumer, Stream: c.AckFloor.Stream}
		err := w.json(path.Join("consumers", c.Name), struct {
			Config jetstream.ConsumerConfig `json:"config"`
			State  server.ConsumerState     `json:"state"`
		}{c.Config, server.ConsumerState{Delivered: floor, AckFloor: floor}})
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *Backup) messages(ctx context.Context, s *StreamBackup, w archiveWriter) error {
	if s.Info.State.Msgs == 0 {
		return nil
	}
	return each(ctx, b.js, s.Name, s.Info.State.FirstSeq, s.Info.State.LastSeq, false, w.message)
}

// each calls fn with the messages of a stream from one place to another; without their bodies if headers is true.
func each(ctx context.Context, js jetstream.JetStream, name string, from, to uint64, headers bool,
	fn func(jetstream.Msg, *jetstream.MsgMetadata) error) error {
	stream, err := js.Stream(ctx, name)
	if err != nil {
		return err
	}
	consumer, err := stream.CreateConsumer(ctx, jetstream.ConsumerConfig{
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: from, HeadersOnly: headers,
		AckPolicy: jetstream.AckNonePolicy, MemoryStorage: true,
	})
	if err != nil {
		return err
	}
	defer func() {
		_ = stream.DeleteConsumer(context.WithoutCancel(ctx), consumer.CachedInfo().Name) // it would end by itself
	}()
	if consumer.CachedInfo().NumPending == 0 {
		return nil
	}
	messages, err := consumer.Messages()
	if err != nil {
		return err
	}
	defer messages.Stop()
	for n := uint64(1); ; n++ {
		m, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			return err
		}
		meta, err := m.Metadata()
		if err != nil {
			return err
		}
		if meta.Sequence.Consumer != n {
			return errors.New("a message was lost on the way: try again")
		}
		if meta.Sequence.Stream > to {
			return nil
		}
		if err := fn(m, meta); err != nil {
			return err
		}
		if meta.Sequence.Stream == to || meta.NumPending == 0 {
			return nil
		}
	}
}

func (w archiveWriter) message(m jetstream.Msg, meta *jetstream.MsgMetadata) error {
	var text bytes.Buffer
	if len(m.Headers()) > 0 { // as clients send them
		text.WriteString("NATS/1.0\r\n")
		if err := http.Header(m.Headers()).Write(&text); err != nil {
			return err
		}
		text.WriteString("\r\n")
	}
	headers := text.Len()
	text.Write(m.Data())
	return w.entry(archive.Header{
		Name: m.Subject(), Timestamp: meta.Timestamp.UnixNano(), Sequence: meta.Sequence.Stream,
		HeaderSize: int64(headers), PayloadSize: int64(len(m.Data())),
	}, text.Bytes())
}

// Restore makes a stream that does not exist from what Backup.Write has written.
func (s *Server) Restore(config jetstream.StreamConfig, from io.Reader) error {
	text, err := json.Marshal(config)
	if err != nil {
		return err
	}
	var c server.StreamConfig
	if err := json.Unmarshal(text, &c); err != nil {
		return err
	}
	s.mu.Lock()
	running := s.running
	s.mu.Unlock()
	if running == nil {
		return errNotRunning
	}
	if _, err := running.GlobalAccount().RestoreStreamV2(&c, from); err != nil {
		return fmt.Errorf("embedded NATS: restore %s: %w", config.Name, err)
	}
	return s.syncConsumers()
}

// EachID calls fn with the id of every message of a stream.
func (s *Server) EachID(ctx context.Context, stream string, fn func(id string)) error {
	nc, err := nats.Connect("", nats.InProcessServer(s))
	if err != nil {
		return fmt.Errorf("embedded NATS: %w", err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err == nil {
		err = each(ctx, js, stream, 1, math.MaxUint64, true, func(m jetstream.Msg, _ *jetstream.MsgMetadata) error {
			fn(m.Headers().Get(nats.MsgIdHdr))
			return nil
		})
	}
	if err != nil {
		return fmt.Errorf("embedded NATS: read %s: %w", stream, err)
	}
	return nil
}

package bus

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// epochMember is the member of a restored stream's metadata with the epoch of the stream that was backed up, since both
// have the same messages at the same places, and the epoch that the restored one would have by itself. A stream that is
// made anew with the same configuration has another one, and so keeps none.
const epochMember = "idp-epoch"

// Epoch identifies a stream: it is the time when it was made.
func Epoch(info *jetstream.StreamInfo) string { return epochOfTime(MadeAt(info)) }

func epochOfTime(made time.Time) string { return strconv.FormatInt(made.UnixNano(), 36) }

// MadeAt returns when a stream was made, before any restore.
func MadeAt(info *jetstream.StreamInfo) time.Time {
	epoch, by, _ := strings.Cut(info.Config.Metadata[epochMember], ".")
	nanos, err := strconv.ParseInt(epoch, 36, 64)
	if err != nil || by != epochOfTime(info.Created) {
		return info.Created
	}
	return time.Unix(0, nanos)
}

// KeepEpoch makes a stream that has just been restored go on with the epoch of the one that was backed up.
func KeepEpoch(ctx context.Context, js jetstream.JetStream, stream, epoch string) error {
	s, err := js.Stream(ctx, stream)
	if err != nil {
		return fmt.Errorf("look at the stream: %w", err)
	}
	info := s.CachedInfo()
	config := info.Config
	config.Metadata = maps.Clone(config.Metadata)
	if config.Metadata == nil {
		config.Metadata = map[string]string{}
	}
	config.Metadata[epochMember] = epoch + "." + epochOfTime(info.Created)
	if _, err := js.UpdateStream(ctx, config); err != nil {
		return fmt.Errorf("keep the stream's epoch: %w", err)
	}
	return nil
}

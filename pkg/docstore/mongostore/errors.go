package mongostore

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
)

// Error codes of the server (src/mongo/base/error_codes.yml).
const (
	codeIndexNotFound   = 27
	codeNamespaceExists = 48
	codeMaxTimeExpired  = 50
	codeDuplicateKey    = 11000
	codeNotImplemented  = 238
)

// Labels that the server and the driver put on errors (the driver specifications "transactions" and "retryable
// writes").
const (
	labelTransient      = "TransientTransactionError"
	labelRetryableWrite = "RetryableWriteError"
	labelUnknownCommit  = "UnknownTransactionCommitResult"
)

// failure classifies an error of the driver: the caller's context has ended, the store is away (apperr.Unavailable), or
// there is a fault. It always wraps the cause, with the labels that the driver looks for.
func failure(ctx context.Context, doing string, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("mongostore: %s: %w", doing, errors.Join(ctx.Err(), err))
	case away(err):
		return apperr.Away("the store", fmt.Errorf("mongostore: %s: %w", doing, err))
	default:
		return fmt.Errorf("mongostore: %s: %w", doing, err)
	}
}

// away reports whether the same operation may succeed later.
func away(err error) bool {
	return unreachable(err) || hasLabel(err, labelTransient) || hasLabel(err, labelRetryableWrite) ||
		hasCode(err, 134) || hasCode(err, 262) // ReadConcernMajorityNotAvailableYet, ExceededTimeLimit
}

// unreachable reports whether no primary answered.
func unreachable(err error) bool {
	if mongo.IsTimeout(err) || mongo.IsNetworkError(err) {
		return true
	}
	if _, ok := errors.AsType[mongo.ClientBulkWriteException](err); ok {
		return false // not a ServerError, but sent by a server
	}
	var server mongo.ServerError
	if !errors.As(err, &server) {
		return true // no server answered: none was found, the pool was exhausted, or the client is closed
	}
	for _, code := range []int{
		6, 7, 89, 9001, // HostUnreachable, HostNotFound, NetworkTimeout, SocketException
		91, 11600, // ShutdownInProgress, InterruptedAtShutdown
		189, 10107, 11602, 13435, 13436, // stepped down, not primary, or not yet
	} {
		if server.HasErrorCode(code) {
			return true
		}
	}
	return false
}

func hasLabel(err error, label string) bool {
	var labeled mongo.LabeledError
	return errors.As(err, &labeled) && labeled.HasErrorLabel(label)
}

func hasCode(err error, code int) bool {
	var server mongo.ServerError
	return errors.As(err, &server) && server.HasErrorCode(code)
}

// indexInMessage finds the name of the index in a duplicate key message: "… index: unique.username.text.1 dup key: …".
var indexInMessage = regexp.MustCompile(`index: (\S+) dup key`)

// duplicate makes the DuplicateError of a refusal with code 11000.
func duplicate(def *docstore.Def, entry *docstore.Entry, e mongo.WriteError) error {
	d := &docstore.DuplicateError{Collection: def.Name, Value: entry.ID, Entry: entry}
	// Servers report the keys of the index beside the message since MongoDB 4.2.
	pattern, reported := e.Raw.Lookup("keyPattern").DocumentOK()
	named := indexInMessage.FindStringSubmatch(e.Message)
	for i := range def.Indexes {
		x := &def.Indexes[i]
		field := entryField(x.Name)
		if reported && isMissing(pattern, field) || !reported && (named == nil || named[1] != uniqueName(def, x)) {
			continue
		}
		d.Index = x.Name
		switch values, ok := e.Raw.Lookup("keyValue").DocumentOK(); {
		case ok:
			d.Value = textOf(values, field)
		case !x.Many:
			d.Value = fmt.Sprint(scalar(x, entry.Keys[x.Slot]))
		case len(entry.Lists[x.Slot]) == 1:
			d.Value = entry.Lists[x.Slot][0]
		default: // only the message has the value, and it would have to be parsed
			d.Value = ""
		}
	}
	return d
}

// isMissing looks up the whole name: Lookup would split it at its dots.
func isMissing(doc bson.Raw, name string) bool { return doc.Lookup(name).Type == 0 }

func textOf(doc bson.Raw, name string) string {
	value := doc.Lookup(name)
	if number, ok := value.AsInt64OK(); ok {
		return strconv.FormatInt(number, 10)
	}
	text, _ := value.StringValueOK()
	return text
}

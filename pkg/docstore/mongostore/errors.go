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

// Codes of the server (src/mongo/base/error_codes.yml).
const (
	codeIndexNotFound   = 27
	codeNamespaceExists = 48
	codeDuplicateKey    = 11000
	codeNotImplemented  = 238
)

// Labels that the server and the driver put on errors (the driver specifications "transactions" and "retryable writes").
const (
	labelTransient      = "TransientTransactionError"
	labelRetryableWrite = "RetryableWriteError"
	labelUnknownCommit  = "UnknownTransactionCommitResult"
)

// failure gives an error of the driver its place: the caller's context ended, the store is away (apperr.Unavailable), or something is
// wrong. It always keeps the cause, with the labels that the driver looks for.
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

// away reports whether trying again later may help.
func away(err error) bool {
	if mongo.IsTimeout(err) || mongo.IsNetworkError(err) {
		return true
	}
	var server mongo.ServerError
	if !errors.As(err, &server) {
		return true // no server answered: none was found, the pool was exhausted, the client is closed
	}
	if server.HasErrorLabel(labelTransient) || server.HasErrorLabel(labelRetryableWrite) {
		return true
	}
	for _, code := range []int{
		6, 7, 89, 9001, // HostUnreachable, HostNotFound, NetworkTimeout, SocketException
		91, 11600, // ShutdownInProgress, InterruptedAtShutdown
		189, 10107, 11602, 13435, 13436, // stepped down, not primary, or not yet
		134, 262, // ReadConcernMajorityNotAvailableYet, ExceededTimeLimit
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

// indexInMessage finds the index in a duplicate key message: "… index: unique.username.text.1 dup key: …".
var indexInMessage = regexp.MustCompile(`index: (\S+) dup key`)

// duplicate makes the DuplicateError of a duplicate key error (code 11000), or nil of any other.
func duplicate(def *docstore.Def, err error) error {
	if !hasCode(err, codeDuplicateKey) {
		return nil
	}
	d := &docstore.DuplicateError{Collection: def.Name}
	answer, message := duplicateDetails(err)
	// Servers since 4.2 say which index by its keys, beside the message for people.
	if pattern, ok := answer.Lookup("keyPattern").DocumentOK(); ok {
		for i := range def.Indexes {
			if field := entryField(def.Indexes[i].Name); !isMissing(pattern, field) {
				d.Index = def.Indexes[i].Name
				if values, ok := answer.Lookup("keyValue").DocumentOK(); ok {
					d.Value = textOf(values, field)
				}
			}
		}
		return d
	}
	if m := indexInMessage.FindStringSubmatch(message); m != nil {
		for i := range def.Indexes {
			if m[1] == uniqueName(def, &def.Indexes[i]) {
				d.Index = def.Indexes[i].Name
			}
		}
	}
	return d
}

// duplicateDetails finds the server's answer in a write's or a command's error.
func duplicateDetails(err error) (bson.Raw, string) {
	if write, ok := errors.AsType[mongo.WriteException](err); ok && len(write.WriteErrors) > 0 {
		return write.WriteErrors[0].Raw, write.WriteErrors[0].Message
	}
	command, _ := errors.AsType[mongo.CommandError](err)
	return command.Raw, command.Message
}

// isMissing looks for a name as it is: the names in question have dots in them.
func isMissing(doc bson.Raw, name string) bool { return doc.Lookup(name).Type == 0 }

func textOf(doc bson.Raw, name string) string {
	value := doc.Lookup(name)
	if number, ok := value.AsInt64OK(); ok {
		return strconv.FormatInt(number, 10)
	}
	text, _ := value.StringValueOK()
	return text
}

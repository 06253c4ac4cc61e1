package replicaset

import (
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Error codes of src/mongo/base/error_codes.yml.
const (
	codeBadValue             = 2
	codeFailedToParse        = 9
	codeInvalidLength        = 16
	codeNamespaceNotFound    = 26
	codeIndexNotFound        = 27
	codeCursorNotFound       = 43
	codeMaxTimeExpired       = 50
	codeWriteConcernTimeout  = 64
	codeImmutableField       = 66
	codeInvalidOptions       = 72
	codeIndexOptionsConflict = 85
	codeIndexSpecsConflict   = 86
	codeWriteConflict        = 112
	codeConflictingOperation = 117
	codeSteppedDown          = 189
	codeTransactionTooOld    = 225
	codeSnapshotUnavailable  = 246
	codeNoSuchTransaction    = 251
	codeNotPermittedInTxn    = 263
	codeNoQueryPlans         = 291
	codeTooLarge             = 10334
	codeNotPrimary           = 10107
	codeDuplicateKey         = 11000
	codeInterruptedByRepl    = 11602
	codeNotPrimaryNoRead     = 13435
)

var codeNames = map[int32]string{
	codeBadValue: "BadValue", codeFailedToParse: "FailedToParse", codeInvalidLength: "InvalidLength",
	codeNamespaceNotFound: "NamespaceNotFound", codeIndexNotFound: "IndexNotFound",
	codeCursorNotFound: "CursorNotFound",
	codeMaxTimeExpired: "MaxTimeMSExpired", codeWriteConcernTimeout: "WriteConcernTimeout",
	codeImmutableField: "ImmutableField", codeInvalidOptions: "InvalidOptions",
	codeIndexOptionsConflict: "IndexOptionsConflict", codeIndexSpecsConflict: "IndexKeySpecsConflict",
	codeWriteConflict: "WriteConflict", codeConflictingOperation: "ConflictingOperationInProgress",
	codeSteppedDown: "PrimarySteppedDown", codeTransactionTooOld: "TransactionTooOld",
	codeSnapshotUnavailable: "SnapshotUnavailable", codeNoSuchTransaction: "NoSuchTransaction",
	codeNotPermittedInTxn: "OperationNotSupportedInTransaction", codeNoQueryPlans: "NoQueryExecutionPlans",
	codeTooLarge: "BSONObjectTooLarge", codeNotPrimary: "NotWritablePrimary", codeDuplicateKey: "DuplicateKey",
	codeInterruptedByRepl: "InterruptedDueToReplStateChange", codeNotPrimaryNoRead: "NotPrimaryNoSecondaryOk",
}

// Error labels (https://github.com/mongodb/specifications, transactions and retryable writes).
const (
	labelTransient      = "TransientTransactionError"
	labelRetryableWrite = "RetryableWriteError"
)

// commandError is the error of a refused command.
type commandError struct {
	code    int32
	message string
	details bson.D // keyPattern and keyValue of a duplicate
}

func (e *commandError) Error() string { return fmt.Sprintf("(%s) %s", codeNames[e.code], e.message) }

func refuse(code int32, format string, args ...any) *commandError {
	return &commandError{code: code, message: fmt.Sprintf(format, args...)}
}

// unsupportedError reports something that the simulation does not have, but that MongoDB may have.
type unsupportedError struct{ what string }

func (e *unsupportedError) Error() string { return "the simulated replica set has no " + e.what }

func unsupported(format string, args ...any) error {
	return &unsupportedError{fmt.Sprintf(format, args...)}
}

// heldError reports that a write outside transactions must wait for a transaction to end.
type heldError struct{ by *transaction }

func (e *heldError) Error() string { return "held by a transaction" }

// stateChange reports whether a code means that the member is not the primary, or not any more.
func stateChange(code int32) bool {
	switch code {
	case codeSteppedDown, codeNotPrimary, codeInterruptedByRepl, codeNotPrimaryNoRead:
		return true
	}
	return false
}

// transient follows isTransientTransactionError in the server's src/mongo/db/transaction_validation and error_labels:
// errors that may not occur again when the whole transaction is repeated.
func transient(code int32, committing bool) bool {
	switch code {
	case codeWriteConflict, codeSnapshotUnavailable, codeNoSuchTransaction:
		return true
	}
	return !committing && stateChange(code)
}

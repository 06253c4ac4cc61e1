package replicaset

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/wiremessage"
)

// The limits that hello announces (https://www.mongodb.com/docs/manual/reference/limits/).
const (
	maxDocument   = 16 << 20
	maxMessage    = 48_000_000
	maxWriteBatch = 100_000
)

const headerSize = 16

var errWire = errors.New("replicaset: a message that is neither OP_MSG nor OP_QUERY")

// request is one message from a client: a command, and the sequences of documents that are members of it.
type request struct {
	id        int32
	legacy    bool // OP_QUERY, which drivers use for the first hello on a connection
	exhaust   bool // the client accepts several replies
	body      bson.Raw
	sequences map[string][]bson.Raw
}

func readRequest(from io.Reader) (*request, error) {
	header := make([]byte, headerSize)
	if _, err := io.ReadFull(from, header); err != nil {
		return nil, err
	}
	length, id, _, opcode, _, _ := wiremessage.ReadHeader(header)
	if length < headerSize || length > maxMessage {
		return nil, fmt.Errorf("replicaset: a message of %d bytes", length)
	}
	body := make([]byte, length-headerSize)
	if _, err := io.ReadFull(from, body); err != nil {
		return nil, err
	}
	switch opcode {
	case wiremessage.OpMsg:
		return readMsg(id, body)
	case wiremessage.OpQuery: // flags, "db.$cmd\0", skip, limit, document
		_, rest, ok := wiremessage.ReadQueryFlags(body)
		if ok {
			_, rest, ok = wiremessage.ReadQueryFullCollectionName(rest)
		}
		if !ok || len(rest) < 8 {
			return nil, errWire
		}
		return &request{id: id, legacy: true, body: rest[8:]}, bson.Raw(rest[8:]).Validate()
	}
	return nil, errWire
}

func readMsg(id int32, body []byte) (*request, error) {
	flags, rest, ok := wiremessage.ReadMsgFlags(body)
	if !ok || flags&(wiremessage.ChecksumPresent|wiremessage.MoreToCome) != 0 {
		return nil, errWire
	}
	r := &request{id: id, exhaust: flags&wiremessage.ExhaustAllowed != 0, sequences: map[string][]bson.Raw{}}
	for len(rest) > 0 {
		kind, after, _ := wiremessage.ReadMsgSectionType(rest)
		switch kind {
		case wiremessage.SingleDocument:
			doc, after, ok := wiremessage.ReadMsgSectionSingleDocument(after)
			if !ok {
				return nil, errWire
			}
			r.body, rest = bson.Raw(doc), after
		case wiremessage.DocumentSequence:
			name, docs, after, ok := wiremessage.ReadMsgSectionDocumentSequence(after)
			if !ok {
				return nil, errWire
			}
			for _, doc := range docs {
				r.sequences[name] = append(r.sequences[name], bson.Raw(doc))
			}
			rest = after
		default:
			return nil, errWire
		}
	}
	return r, r.body.Validate()
}

func writeReply(to io.Writer, r *request, doc bson.Raw, moreToCome bool) error {
	var m []byte
	if r.legacy {
		_, m = wiremessage.AppendHeaderStart(nil, wiremessage.NextRequestID(), r.id, wiremessage.OpReply)
		m = wiremessage.AppendReplyFlags(m, 0)
		m = wiremessage.AppendReplyCursorID(m, 0)
		m = wiremessage.AppendReplyStartingFrom(m, 0)
		m = wiremessage.AppendReplyNumberReturned(m, 1)
	} else {
		_, m = wiremessage.AppendHeaderStart(nil, wiremessage.NextRequestID(), r.id, wiremessage.OpMsg)
		var flags wiremessage.MsgFlag
		if moreToCome {
			flags = wiremessage.MoreToCome
		}
		m = wiremessage.AppendMsgFlags(m, flags)
		m = wiremessage.AppendMsgSectionType(m, wiremessage.SingleDocument)
	}
	m = append(m, doc...)
	binary.LittleEndian.PutUint32(m, uint32(len(m)))
	_, err := to.Write(m)
	return err
}

package replicaset

import (
	"encoding/binary"
	"math"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Values are compared by an encoding whose bytes are in BSON's order of comparison
// (https://www.mongodb.com/docs/manual/reference/bson-type-comparison-order/), like the server's KeyString. No encoding
// is the beginning of another, so that encodings can be joined to compound keys.
const (
	orderUndefined byte = 0x0f // an empty list in an index
	orderNull      byte = 0x14 // also an absent value
	orderNumber    byte = 0x1e
	orderString    byte = 0x3c
	orderBinary    byte = 0x5a
	orderObjectID  byte = 0x64
	orderBool      byte = 0x6e
	orderDate      byte = 0x78
	orderHighest   byte = 0xff
)

var nulEscape = strings.NewReplacer("\x00", "\x00\xff")

// appendValue appends the encoding of v.
func appendValue(b []byte, v bson.RawValue) ([]byte, error) {
	switch v.Type {
	case 0, bson.TypeNull:
		return append(b, orderNull), nil
	case bson.TypeString:
		b = append(b, orderString)
		text := v.StringValue()
		if strings.IndexByte(text, 0) >= 0 {
			text = nulEscape.Replace(text)
		}
		return append(append(b, text...), 0, 1), nil
	case bson.TypeInt32, bson.TypeInt64:
		return appendInt(append(b, orderNumber), v.AsInt64()), nil
	case bson.TypeDouble:
		if f := v.Double(); f == math.Trunc(f) && math.Abs(f) < 1<<53 {
			return appendInt(append(b, orderNumber), int64(f)), nil
		}
	case bson.TypeBinary:
		subtype, data := v.Binary()
		b = append(b, orderBinary)
		b = binary.BigEndian.AppendUint32(b, uint32(len(data))) // shorter ones first, then by subtype
		return append(append(b, subtype), data...), nil
	case bson.TypeObjectID:
		id := v.ObjectID()
		return append(append(b, orderObjectID), id[:]...), nil
	case bson.TypeBoolean:
		if v.Boolean() {
			return append(b, orderBool, 1), nil
		}
		return append(b, orderBool, 0), nil
	case bson.TypeDateTime:
		return appendInt(append(b, orderDate), v.DateTime()), nil
	}
	return nil, unsupported("comparison of a %s (%s)", v.Type, v)
}

func appendInt(b []byte, n int64) []byte { return binary.BigEndian.AppendUint64(b, uint64(n)^(1<<63)) }

func encodeValue(v bson.RawValue) (string, error) {
	b, err := appendValue(nil, v)
	return string(b), err
}

// lookup finds a member by its dotted path; it returns the zero RawValue if there is none. It does not look into lists:
// mongostore has them only at the ends of paths.
func lookup(doc bson.Raw, path string) (bson.RawValue, error) {
	for {
		name, rest, nested := strings.Cut(path, ".")
		v := doc.Lookup(name)
		if !nested || v.Type == 0 {
			return v, nil
		}
		switch v.Type {
		case bson.TypeEmbeddedDocument:
			doc, path = v.Document(), rest
		case bson.TypeArray:
			return v, unsupported("path %s through a list", path)
		default:
			return bson.RawValue{}, nil
		}
	}
}

package embedded

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
)

// record is a record of a block.
type record struct {
	sequence uint64
	subject  string
	body     []byte
}

// records reads the records of a block.
type records struct {
	from     io.Reader
	check    hash.Hash64
	offset   int64 // where the last record begins
	position int64
	left     int64 // bytes
	buffer   []byte
}

var errChecksum = errors.New("the checksum is wrong")

func (r *records) next() (record, error) {
	r.offset = r.position
	if r.left == 0 {
		return record{}, io.EOF
	}
	var header [recordHeader]byte
	if r.left < recordHeader {
		return record{}, fmt.Errorf("%d bytes are too few for a record", r.left)
	}
	if _, err := io.ReadFull(r.from, header[:]); err != nil {
		return record{}, fmt.Errorf("read: %w", reason(err))
	}
	length := binary.LittleEndian.Uint32(header[0:])
	before := int(binary.LittleEndian.Uint16(header[20:])) // end of the subject
	subject := before
	if length&hasHeaders != 0 {
		before += 4
	}
	length &^= hasHeaders
	if int64(length) > r.left || length > maxRecord || int(length) < recordHeader+before+recordChecksum {
		return record{}, fmt.Errorf("a length of %d bytes is not possible", length)
	}
	size := int(length) - recordHeader
	r.buffer = slices.Grow(r.buffer[:0], size)[:size]
	if _, err := io.ReadFull(r.from, r.buffer); err != nil {
		return record{}, fmt.Errorf("read: %w", reason(err))
	}
	body := r.buffer[before : size-recordChecksum]
	r.check.Reset()
	r.check.Write(header[4:20])
	r.check.Write(r.buffer[:subject])
	r.check.Write(body)
	if !bytes.Equal(r.check.Sum(nil), r.buffer[size-recordChecksum:]) {
		return record{}, errChecksum
	}
	if before > subject { // headers come before the content
		headers := binary.LittleEndian.Uint32(r.buffer[subject:])
		if int64(headers) > int64(len(body)) {
			return record{}, fmt.Errorf("headers of %d bytes are not possible", headers)
		}
		body = body[headers:]
	}
	r.left -= int64(length)
	r.position += int64(length)
	return record{binary.LittleEndian.Uint64(header[4:]), string(r.buffer[:subject]), body}, nil
}

// numbers reads varints.
type numbers struct {
	rest  []byte
	short bool
}

func (n *numbers) unsigned() uint64 {
	v, size := binary.Uvarint(n.rest)
	n.skip(size)
	return v
}

func (n *numbers) signed() int64 {
	v, size := binary.Varint(n.rest)
	n.skip(size)
	return v
}

func (n *numbers) skip(size int) {
	n.short = n.short || size <= 0
	n.rest = n.rest[max(size, 0):]
}

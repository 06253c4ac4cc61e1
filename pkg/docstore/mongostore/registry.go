package mongostore

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/idplatform/idplatform/pkg/clock"
)

// registry converts documents to BSON and back without loss: a decoded document has the same JSON form as the encoded
// one.
var registry = newRegistry()

func newRegistry() *bson.Registry {
	r := bson.NewRegistry()

	structs := &structCodec{}
	r.RegisterKindEncoder(reflect.Struct, structs)
	r.RegisterKindDecoder(reflect.Struct, structs)

	moment := reflect.TypeFor[clock.Time]()
	r.RegisterTypeEncoder(moment, bson.ValueEncoderFunc(encodeTime))
	r.RegisterTypeDecoder(moment, bson.ValueDecoderFunc(decodeTime))

	text, fromText := bson.ValueEncoderFunc(encodeJSONText), bson.ValueDecoderFunc(decodeJSONText)
	for _, kind := range []reflect.Kind{reflect.Map, reflect.Interface} {
		r.RegisterKindEncoder(kind, text)
		r.RegisterKindDecoder(kind, fromText)
	}
	// The decoders are chosen by whether a type writes its own JSON, not by whether it reads it, so that they match the
	// encoders.
	for _, own := range []reflect.Type{reflect.TypeFor[json.Marshaler](), reflect.TypeFor[encoding.TextMarshaler]()} {
		r.RegisterInterfaceEncoder(own, text)
		r.RegisterInterfaceDecoder(own, fromText)
	}
	// Types that the driver would encode with loss.
	for _, t := range []reflect.Type{reflect.TypeFor[any](), reflect.TypeFor[json.Number](),
		reflect.TypeFor[time.Time]()} {
		r.RegisterTypeEncoder(t, text)
		r.RegisterTypeDecoder(t, fromText)
	}
	return r
}

func encodeTime(_ bson.EncodeContext, vw bson.ValueWriter, v reflect.Value) error {
	t := v.Interface().(clock.Time)
	if t.IsZero() {
		return vw.WriteNull()
	}
	return vw.WriteDateTime(t.Millis())
}

func decodeTime(_ bson.DecodeContext, vr bson.ValueReader, v reflect.Value) error {
	if vr.Type() == bson.TypeNull {
		v.SetZero()
		return vr.ReadNull()
	}
	ms, err := vr.ReadDateTime()
	if err != nil {
		return err
	}
	v.Set(reflect.ValueOf(clock.FromMillis(ms)))
	return nil
}

// encodeJSONText writes the JSON form of v as a string. A pointer is encoded as what it points to, so that *clock.Time,
// which has the methods of clock.Time, becomes a date, too.
func encodeJSONText(ec bson.EncodeContext, vw bson.ValueWriter, v reflect.Value) error {
	switch v.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Interface:
		if v.IsNil() {
			return vw.WriteNull()
		}
	}
	if v.Kind() == reflect.Pointer {
		encoder, err := ec.LookupEncoder(v.Type().Elem())
		if err != nil {
			return err
		}
		return encoder.EncodeValue(ec, vw, v.Elem())
	}
	value := v.Interface()
	if v.CanAddr() {
		value = v.Addr().Interface() // MarshalJSON may have a pointer receiver
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return err
	}
	return vw.WriteString(string(bytes.TrimSuffix(text.Bytes(), []byte("\n"))))
}

func decodeJSONText(dc bson.DecodeContext, vr bson.ValueReader, v reflect.Value) error {
	if vr.Type() == bson.TypeNull {
		v.SetZero()
		return vr.ReadNull()
	}
	if v.Kind() == reflect.Pointer {
		decoder, err := dc.LookupDecoder(v.Type().Elem())
		if err != nil {
			return err
		}
		v.Set(reflect.New(v.Type().Elem()))
		return decoder.DecodeValue(dc, vr, v.Elem())
	}
	text, err := vr.ReadString()
	if err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(text), v.Addr().Interface()); err != nil {
		return fmt.Errorf("stored JSON: %w", err)
	}
	return nil
}

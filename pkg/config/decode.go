package config

import (
	"encoding"
	"errors"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// A layer is the content of one source. Its values are as they were written: a string or, from a file, a []string or
// a map[string]string.
type layer struct {
	values map[*field]written
	faults []string
	file   string // the configuration file that this layer names, if any
}

type written struct {
	where string // for messages: IDP_NATS_URL, --nats-url, or a file and line
	value any
}

// decode converts the layer's values to the types of their fields, nested by section. It adds faults to the layer.
func (s *schema) decode(l *layer) map[string]any {
	tree := map[string]any{}
	for i := range s.fields {
		f := &s.fields[i]
		w, ok := l.values[f]
		if !ok {
			continue
		}
		target := reflect.New(f.typ).Elem()
		if err := decode(target, w.value); err != nil {
			l.faults = append(l.faults, w.where+" "+err.Error())
			continue
		}
		branch, path := tree, strings.Split(f.key, ".")
		for _, section := range path[:len(path)-1] {
			next, ok := branch[section].(map[string]any)
			if !ok {
				next = map[string]any{}
				branch[section] = next
			}
			branch = next
		}
		branch[path[len(path)-1]] = target.Interface()
	}
	return tree
}

// decodable reports whether decode supports the type.
func decodable(t reflect.Type) bool {
	switch {
	case reflect.PointerTo(t).Implements(unmarshaler):
		return true
	case t.Kind() == reflect.Slice:
		return t.Elem().Kind() == reflect.String
	case t.Kind() == reflect.Map:
		return t.Elem().Kind() == reflect.String && t.Key().Kind() == reflect.String
	}
	switch t.Kind() {
	case reflect.String, reflect.Bool, reflect.Float32, reflect.Float64,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return true
	}
	return false
}

// decode sets target, which is of a decodable type, to the written value. Its errors continue a sentence that starts
// with the source. They never contain the value, which may be a secret in the wrong place.
func decode(target reflect.Value, value any) error {
	t := target.Type()
	text, isText := value.(string)
	switch {
	case target.CanAddr() && reflect.PointerTo(t).Implements(unmarshaler):
		if !isText {
			return errors.New("must be a single value")
		}
		if err := target.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(text)); err != nil {
			return explain(err, text)
		}
		return nil
	case t.Kind() == reflect.Slice:
		return decodeList(target, value)
	case t.Kind() == reflect.Map:
		return decodeMap(target, value)
	case !isText:
		return errors.New("must be a single value")
	case t == duration:
		d, err := time.ParseDuration(text)
		if err != nil {
			return errors.New("must be a duration such as 500ms, 30s or 1h30m")
		}
		target.SetInt(int64(d))
		return nil
	}
	switch t.Kind() {
	case reflect.String:
		target.SetString(text)
	case reflect.Bool:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return errors.New("must be true or false")
		}
		target.SetBool(b)
	case reflect.Float32, reflect.Float64:
		n, err := strconv.ParseFloat(text, t.Bits())
		if err != nil {
			return errors.New("must be a number")
		}
		target.SetFloat(n)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		n, err := strconv.ParseUint(text, 10, t.Bits())
		if err != nil {
			return errors.New("must be a whole number, not negative and not too large")
		}
		target.SetUint(n)
	default:
		n, err := strconv.ParseInt(text, 10, t.Bits())
		if err != nil {
			return errors.New("must be a whole number, not too large")
		}
		target.SetInt(n)
	}
	return nil
}

// explain returns the error of a type's own UnmarshalText, or a general one if that repeats the value.
func explain(err error, text string) error {
	if strings.Contains(err.Error(), text) || strings.Contains(err.Error(), strconv.Quote(text)) {
		return errors.New("has no valid value")
	}
	return err
}

func decodeList(target reflect.Value, value any) error {
	items, isList := value.([]string)
	if !isList {
		text, isText := value.(string)
		if !isText {
			return errors.New("must be a list")
		}
		for item := range strings.SplitSeq(text, ",") {
			if item = strings.TrimSpace(item); item != "" {
				items = append(items, item)
			}
		}
	}
	list := reflect.MakeSlice(target.Type(), len(items), len(items))
	for i, item := range items {
		list.Index(i).SetString(item)
	}
	target.Set(list)
	return nil
}

func decodeMap(target reflect.Value, value any) error {
	pairs, isMap := value.(map[string]string)
	if !isMap {
		var items []string
		if err := decodeList(reflect.ValueOf(&items).Elem(), value); err != nil {
			return errors.New("must be a map")
		}
		pairs = map[string]string{}
		for _, item := range items {
			key, val, ok := strings.Cut(item, "=")
			if key = strings.TrimSpace(key); !ok || key == "" {
				return errors.New("must be like name=value,other=value")
			}
			if _, twice := pairs[key]; twice {
				return errors.New("names a key twice")
			}
			pairs[key] = strings.TrimSpace(val)
		}
	}
	m := reflect.MakeMapWithSize(target.Type(), len(pairs))
	for key, val := range pairs {
		m.SetMapIndex(reflect.ValueOf(key).Convert(target.Type().Key()),
			reflect.ValueOf(val).Convert(target.Type().Elem()))
	}
	target.Set(m)
	return nil
}

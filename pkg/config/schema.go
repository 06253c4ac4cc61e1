package config

import (
	"encoding"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"time"

	"github.com/idplatform/idplatform/pkg/secret"
)

// A schema holds the keys that a configuration struct declares.
type schema struct {
	fields   []field
	byKey    map[string]*field
	byEnv    map[string]*field
	byFlag   map[string]*field
	sections map[string]bool
}

type field struct {
	key    string // nats.url
	env    string // IDP_NATS_URL
	flag   string // nats-url; empty for a secret
	doc    string
	index  []int
	typ    reflect.Type
	secret bool
}

const prefix = "IDP_"

var (
	keyPart     = regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)
	unmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
	duration    = reflect.TypeFor[time.Duration]()
	secrets     = reflect.TypeFor[secret.String]()
)

// schemaOf reads a struct's tags. It panics if two keys have the same name in a layer, or if the type of a field is
// not supported.
func schemaOf(t reflect.Type) *schema {
	s := &schema{
		byKey: map[string]*field{}, byEnv: map[string]*field{}, byFlag: map[string]*field{},
		sections: map[string]bool{},
	}
	s.add(t, "", nil)
	for i := range s.fields {
		f := &s.fields[i]
		if s.byEnv[f.env] != nil || s.sections[f.key] || f.key == "config" || f.key == "help" {
			panic(fmt.Sprintf("config: the key %s is taken", f.key))
		}
		s.byKey[f.key], s.byEnv[f.env] = f, f
		if f.flag != "" {
			s.byFlag[f.flag] = f
		}
	}
	for _, f := range s.fields {
		if s.byEnv[f.env+fileSuffix] != nil {
			panic(fmt.Sprintf("config: %s%s would name both a key and the file with another's value",
				f.env, fileSuffix))
		}
	}
	return s
}

func (s *schema) add(t reflect.Type, section string, index []int) {
	for i := range t.NumField() {
		member := t.Field(i)
		name, isField := tag(member)
		at := append(index[:len(index):len(index)], i)
		switch {
		case !isField:
			continue
		case name == "":
			s.add(member.Type, section, at)
			continue
		case member.Anonymous || !keyPart.MatchString(name):
			panic(fmt.Sprintf("config: %s.%s needs a mapstructure tag: a name in snake case, or \",squash\" "+
				"if it is an embedded struct of an exported type", t, member.Name))
		}
		key := section + name
		if isSection(member.Type) {
			s.sections[key] = true
			s.add(member.Type, key+".", at)
			continue
		}
		if !decodable(member.Type) {
			panic(fmt.Sprintf("config: %s.%s has a type that config does not support", t, member.Name))
		}
		f := field{key: key, index: at, typ: member.Type, doc: member.Tag.Get("doc"), secret: member.Type == secrets}
		f.env = prefix + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
		if !f.secret {
			f.flag = strings.NewReplacer(".", "-", "_", "-").Replace(key)
		}
		s.fields = append(s.fields, f)
	}
}

// tag returns a member's name in keys; it is empty for a squashed struct. A member that is not exported or that is
// tagged "-" is not a field.
func tag(member reflect.StructField) (name string, isField bool) {
	name, option, _ := strings.Cut(member.Tag.Get("mapstructure"), ",")
	if option == "squash" && member.IsExported() {
		return "", true
	}
	if name == "" || option != "" {
		name = "?" // refused by schemaOf
	}
	return name, name != "-" && (member.IsExported() || member.Anonymous)
}

func isSection(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && !reflect.PointerTo(t).Implements(unmarshaler)
}

// value finds the field in a struct of the schema's type.
func (f *field) value(config reflect.Value) reflect.Value { return config.FieldByIndex(f.index) }

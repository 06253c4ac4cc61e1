package saml

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/beevik/etree"
	xrv "github.com/mattermost/xml-roundtrip-validator"
)

// Bounds of the tree of a message. goxmldsig goes no deeper than 1000 elements either.
const (
	maxElements   = 500
	maxAttributes = 50 // of an element
	maxDepth      = 20
)

// parse reads a message as a tree, once it is known to be harmless: no document type and so no entities, no processing
// instructions, bounded, and read alike by all parsers that look at it.
func parse(data []byte) (*etree.Element, error) {
	if len(data) > maxMessage || !utf8.Valid(data) {
		return nil, errUnreadable
	}
	if harmless(data) != nil || xrv.Validate(bytes.NewReader(data)) != nil {
		return nil, errUnreadable
	}
	doc := etree.NewDocument()
	doc.ReadSettings.MaxDepth = maxDepth + 1
	if err := doc.ReadFromBytes(data); err != nil || doc.Root() == nil {
		return nil, errUnreadable
	}
	return doc.Root(), nil
}

var (
	errHarmful  = errors.New("the message has what SAML does not need")
	declaration = regexp.MustCompile(`^version="1\.0"(\s+encoding="(?i:utf-8)")?(\s+standalone="\w+")?\s*$`)
)

// harmless goes through the tokens of a message.
func harmless(data []byte) error {
	decoder := xml.NewDecoder(bytes.NewReader(data))
	decoder.CharsetReader = func(string, io.Reader) (io.Reader, error) { return nil, errHarmful }
	depth, elements, roots, first := 0, 0, 0, true
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) && depth == 0 && roots == 1 {
			return nil
		}
		if err != nil {
			return err
		}
		switch t := token.(type) {
		case xml.StartElement:
			if depth == 0 {
				roots++
			}
			depth++
			elements++
			if depth > maxDepth || elements > maxElements || roots > 1 || strings.Contains(t.Name.Local, ":") ||
				!plainAttributes(t.Attr) {
				return errHarmful
			}
		case xml.EndElement:
			depth--
		case xml.Directive:
			return errHarmful
		case xml.ProcInst:
			text := strings.ReplaceAll(strings.TrimSpace(string(t.Inst)), "'", `"`)
			if !first || t.Target != "xml" || !declaration.MatchString(text) {
				return errHarmful
			}
		case xml.CharData:
			if depth == 0 && len(bytes.TrimSpace(t)) > 0 {
				return errHarmful
			}
		}
		first = false
	}
}

// plainAttributes reports whether no local name occurs twice: parsers differ in which of a:ID and b:ID is the ID, and
// in what a colon at an end means.
func plainAttributes(attributes []xml.Attr) bool {
	if len(attributes) > maxAttributes {
		return false
	}
	seen := make(map[string]bool, len(attributes))
	for _, a := range attributes {
		name := a.Name.Local
		if a.Name.Space == "xmlns" || a.Name.Space == "" && name == "xmlns" {
			name = "xmlns:" + name
		}
		if seen[name] || strings.Contains(a.Name.Local, ":") {
			return false
		}
		seen[name] = true
	}
	return true
}

// is reports whether an element has a name of a namespace.
func is(el *etree.Element, space, tag string) bool {
	return el.Tag == tag && el.NamespaceURI() == space
}

// children lists the direct children with a name of a namespace.
func children(el *etree.Element, space, tag string) (all []*etree.Element) {
	for _, child := range el.ChildElements() {
		if is(child, space, tag) {
			all = append(all, child)
		}
	}
	return all
}

// walk calls see for an element and all below.
func walk(el *etree.Element, see func(*etree.Element)) {
	see(el)
	for _, child := range el.ChildElements() {
		walk(child, see)
	}
}

// into decodes an element into a struct.
func into(el *etree.Element, v any) error {
	doc := etree.NewDocument()
	doc.SetRoot(el.Copy())
	body, err := doc.WriteToBytes()
	if err == nil {
		err = xml.Unmarshal(body, v)
	}
	if err != nil {
		return errUnreadable
	}
	return nil
}

package saml

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"io"
	"net/url"
	"strings"
	"unicode/utf8"
)

// Inbound is a message as the browser has brought it: the raw query of a GET (HTTP-Redirect), which must not be decoded
// because its signature is over the encoded octets, or the form of a POST (HTTP-POST).
type Inbound struct {
	Query string
	Form  url.Values // nil for a GET
}

// The parameters of both bindings.
const (
	paramRequest  = "SAMLRequest"
	paramResponse = "SAMLResponse"
	paramRelay    = "RelayState"
	paramSigAlg   = "SigAlg"
	paramSign     = "Signature"
	paramEncoding = "SAMLEncoding"
	deflate       = "urn:oasis:names:tc:SAML:2.0:bindings:URL-Encoding:DEFLATE"
)

// received is a message out of its binding.
type received struct {
	xml        []byte
	response   bool // it was in SAMLResponse
	relayState string
	post       bool
	signature  querySignature // of the Redirect binding; empty if none
}

var (
	errUnreadable = page("The application's message is not readable as SAML.")
	errAmbiguous  = page("The application's message has a parameter twice.")
	errTooLarge   = page("The application's message is too large.")
)

// decode takes a message out of its binding.
func decode(in Inbound) (received, error) {
	if in.Form != nil {
		return decodePost(in.Form)
	}
	return decodeRedirect(in.Query)
}

// decodePost is the HTTP-POST binding (SAML bindings §3.5.4).
func decodePost(form url.Values) (received, error) {
	m := received{post: true, response: form.Has(paramResponse)}
	for _, name := range []string{paramRequest, paramResponse, paramRelay} {
		if len(form[name]) > 1 {
			return m, errAmbiguous
		}
	}
	if form.Has(paramRequest) == m.response {
		return m, errUnreadable
	}
	text := form.Get(paramRequest) + form.Get(paramResponse)
	m.relayState = form.Get(paramRelay)
	if len(text) > maxEncoded || len(m.relayState) > maxRelayState {
		return m, errTooLarge
	}
	var err error
	if m.xml, err = base64.StdEncoding.DecodeString(withoutSpaces(text)); err != nil {
		return m, errUnreadable
	}
	if len(m.xml) > maxMessage {
		return m, errTooLarge
	}
	if !utf8.Valid(m.xml) || !bytes.HasPrefix(bytes.TrimSpace(m.xml), []byte("<")) { // node-saml compresses here, too
		m.xml, err = inflate(text)
	}
	return m, err
}

// decodeRedirect is the HTTP-Redirect binding (SAML bindings §3.4.4).
func decodeRedirect(query string) (received, error) {
	if len(query) > maxEncoded {
		return received{}, errTooLarge
	}
	raw, values := map[string]string{}, map[string]string{}
	for part := range strings.SplitSeq(query, "&") {
		name, text, _ := strings.Cut(part, "=")
		switch name {
		case paramRequest, paramResponse, paramRelay, paramSigAlg, paramSign, paramEncoding:
		default:
			continue
		}
		if _, twice := raw[name]; twice {
			return received{}, errAmbiguous
		}
		value, err := url.QueryUnescape(text)
		if err != nil {
			return received{}, errUnreadable
		}
		raw[name], values[name] = text, value
	}
	kind := paramRequest
	_, isRequest := raw[paramRequest]
	_, isResponse := raw[paramResponse]
	if isResponse {
		kind = paramResponse
	}
	if encoding, named := values[paramEncoding]; isRequest == isResponse || named && encoding != deflate {
		return received{}, errUnreadable
	}
	m := received{response: isResponse, relayState: values[paramRelay]}
	if len(m.relayState) > maxRelayState {
		return m, errTooLarge
	}
	var err error
	if m.signature, err = signatureIn(kind, raw, values); err != nil {
		return m, err
	}
	m.xml, err = inflate(values[kind])
	return m, err
}

func inflate(text string) ([]byte, error) {
	packed, err := base64.StdEncoding.DecodeString(withoutSpaces(text))
	if err != nil {
		return nil, errUnreadable
	}
	plain, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(packed)), maxMessage+1))
	switch {
	case len(plain) > maxMessage:
		return nil, errTooLarge
	case err != nil:
		return nil, errUnreadable
	}
	return plain, nil
}

// signatureIn reads the signature of the query, which is over its parameters in a fixed order, as they were encoded.
func signatureIn(kind string, raw, values map[string]string) (querySignature, error) {
	_, signed := raw[paramSign]
	algorithm, named := values[paramSigAlg]
	if signed != named {
		return querySignature{}, errBadSignature
	}
	if !signed {
		return querySignature{}, nil
	}
	value, err := base64.StdEncoding.DecodeString(withoutSpaces(values[paramSign]))
	if err != nil || len(value) == 0 {
		return querySignature{}, errBadSignature
	}
	again := map[string]string{}
	for name, value := range values {
		again[name] = escape(value)
	}
	return querySignature{
		octets: []string{octets(kind, raw), octets(kind, again)}, algorithm: algorithm, value: value,
	}, nil
}

func octets(kind string, encoded map[string]string) string {
	text := kind + "=" + encoded[kind]
	if state, has := encoded[paramRelay]; has {
		text += "&" + paramRelay + "=" + state
	}
	return text + "&" + paramSigAlg + "=" + encoded[paramSigAlg]
}

// escape encodes a value as JavaScript does (encodeURIComponent). node-saml signs that, and then sends the same values
// in another encoding. The values are still those that were signed.
func escape(value string) string {
	return unescaped.Replace(url.QueryEscape(value))
}

var unescaped = strings.NewReplacer("+", "%20", "%21", "!", "%27", "'", "%28", "(", "%29", ")", "%2A", "*")

// withoutSpaces drops line ends, with which some products break base64.
func withoutSpaces(text string) string {
	if !strings.ContainsAny(text, " \t\r\n") {
		return text
	}
	return strings.Join(strings.Fields(text), "")
}

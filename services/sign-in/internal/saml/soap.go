package saml

import (
	"encoding/xml"
	"errors"

	"github.com/beevik/etree"
)

// nsSOAP is the namespace of SOAP 1.1 (SAML bindings §3.2).
const nsSOAP = "http://schemas.xmlsoap.org/soap/envelope/"

// inSOAP puts a message into an envelope.
func inSOAP(message *etree.Element) ([]byte, error) {
	envelope := etree.NewElement("soap:Envelope")
	envelope.CreateAttr("xmlns:soap", nsSOAP)
	envelope.CreateElement("soap:Body").AddChild(message)
	return write(envelope)
}

var errSOAP = errors.New("the application's answer by SOAP does not confirm the logout")

// checkSOAP reads the answer to a LogoutRequest by SOAP. It came over the connection that the request went over, so its
// signature tells nothing more.
func checkSOAP(body []byte) error {
	root, err := parse(body)
	if err != nil || !is(root, nsSOAP, "Envelope") {
		return errSOAP
	}
	var answer struct {
		XMLName xml.Name `xml:"http://schemas.xmlsoap.org/soap/envelope/ Envelope"`
		Body    struct {
			Response logoutResponse `xml:"urn:oasis:names:tc:SAML:2.0:protocol LogoutResponse"`
		} `xml:"http://schemas.xmlsoap.org/soap/envelope/ Body"`
	}
	if into(root, &answer) != nil || !answer.Body.Response.succeeded() {
		return errSOAP
	}
	return nil
}

package saml

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"time"

	"github.com/beevik/etree"
	dsig "github.com/russellhaering/goxmldsig"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/services/questions"
)

// Key is the key pair of a tenant, with a certificate that applications are given, and the secret that opaque names of
// people come from. There is one per tenant. It is made when it is first needed and stays, because applications have
// the certificate in their settings.
type Key struct {
	docstore.Meta
	Certificate string      `json:"certificate"` // PEM
	PrivateKey  secret.Text `json:"private_key"` // PKCS #8, PEM
	Salt        secret.Text `json:"salt"`        // base64
}

var keys = docstore.Define(docstore.Schema[Key]{
	Name: "saml_keys", Noun: "key",
	Sealed: func(k *Key) []docstore.Sealed {
		return []docstore.Sealed{
			docstore.Seal("private_key", &k.PrivateKey, docstore.NotSent),
			docstore.Seal("salt", &k.Salt, docstore.NotSent),
		}
	},
})

const (
	keyID    = "signing"
	keyBits  = 2048
	keyYears = 20 // products stop when a certificate in their settings expires
	// useOfSigningKey is the use that keys of applications are sealed for.
	useOfSigningKey = "applications.signing-key"
)

// signer signs with a key of RSA.
type signer struct {
	key  *rsa.PrivateKey
	cert []byte // DER
}

// tenantKey is a tenant's Key, ready for use.
type tenantKey struct {
	*signer
	salt []byte
}

// tenant returns the key of the tenant, and makes it if there is none. Of several replicas that make one at once, all
// use the one that was stored first. The error is apperr.NotFound for a tenant without applications.
func (p *Provider) tenant(ctx context.Context) (*tenantKey, error) {
	tenant := request.Tenant(ctx)
	if k, ok := p.tenants.Get(tenant); ok {
		return k, nil
	}
	made, err, _ := p.making.Do(tenant, func() (any, error) {
		ctx := request.System(context.WithoutCancel(ctx), tenant) // others wait for it
		k, err := p.load(ctx)
		if apperr.IsNotFound(err) {
			if err = p.mayHaveKey(ctx); err == nil {
				err = p.make(ctx)
			}
			if err == nil {
				k, err = p.load(ctx)
			}
		}
		if err == nil {
			p.tenants.Set(tenant, k)
		}
		return k, err
	})
	if err != nil {
		return nil, fmt.Errorf("the SAML key of a tenant: %w", err)
	}
	return made.(*tenantKey), nil
}

// mayHaveKey keeps strangers from making keys for tenants that do not exist.
func (p *Provider) mayHaveKey(ctx context.Context) error {
	if p.HasApplications == nil {
		return nil
	}
	has, err := p.HasApplications(ctx)
	if err == nil && !has {
		err = apperr.Missing("application")
	}
	return err
}

func (p *Provider) load(ctx context.Context) (*tenantKey, error) {
	doc, err := keys.Find(ctx, p.Store, keyID)
	if err != nil {
		return nil, err
	}
	k, err := doc.Value()
	if err != nil {
		return nil, err
	}
	secrets, err := keys.RevealAll(ctx, p.Store, keyID)
	if err != nil {
		return nil, err
	}
	s, err := signerOf(k.Certificate, secrets["private_key"].Reveal())
	if err != nil {
		return nil, err
	}
	salt, err := base64.StdEncoding.DecodeString(secrets["salt"].Reveal())
	return &tenantKey{s, salt}, err
}

// make stores a new key, unless there is one.
func (p *Provider) make(ctx context.Context) error {
	private, err := p.newKey()
	if err != nil {
		return err
	}
	cert, err := certify(private, request.Tenant(ctx), p.Store.Now())
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return err
	}
	salt := make([]byte, 32)
	_, _ = rand.Read(salt) // never fails (crypto/rand)
	k := &Key{
		Meta: docstore.Meta{ID: keyID}, Certificate: asPEM("CERTIFICATE", cert),
		PrivateKey: secret.NewText(asPEM("PRIVATE KEY", der)),
		Salt:       secret.NewText(base64.StdEncoding.EncodeToString(salt)),
	}
	err = docstore.Do(ctx, p.Store, func(tx *docstore.Tx) error {
		found, err := keys.LoadMany(ctx, tx, []string{keyID})
		if err != nil || len(found) > 0 {
			return err
		}
		_, err = keys.Insert(ctx, tx, k)
		return err
	})
	if _, first := errors.AsType[*docstore.DuplicateError](err); first { // another replica's
		return nil
	}
	return err
}

func certify(key *rsa.PrivateKey, tenant string, now clock.Time) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	name := pkix.Name{Organization: []string{tenant}, CommonName: "Sign-in (SAML)"}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: name, Issuer: name, KeyUsage: x509.KeyUsageDigitalSignature,
		NotBefore: now.Add(-24 * time.Hour).Std(), NotAfter: now.Std().AddDate(keyYears, 0, 0),
		BasicConstraintsValid: true,
	}
	return x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
}

func asPEM(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// errKey is the error for a key that cannot sign. It tells nothing about the key.
var errKey = errors.New("the key is not of RSA, or is not that of its certificate")

// signerOf reads a certificate and its key, both PEM.
func signerOf(certificate, key string) (*signer, error) {
	certBlock, _ := pem.Decode([]byte(certificate))
	keyBlock, _ := pem.Decode([]byte(key))
	if certBlock == nil || keyBlock == nil {
		return nil, errKey
	}
	cert, err := x509.ParseCertificate(certBlock.Bytes)
	if err != nil {
		return nil, errKey
	}
	private, err := x509.ParsePKCS8PrivateKey(keyBlock.Bytes)
	if err != nil {
		if private, err = x509.ParsePKCS1PrivateKey(keyBlock.Bytes); err != nil {
			return nil, errKey
		}
	}
	rsaKey, isRSA := private.(*rsa.PrivateKey)
	if !isRSA || !rsaKey.PublicKey.Equal(cert.PublicKey) {
		return nil, errKey
	}
	return &signer{rsaKey, cert.Raw}, nil
}

// signerFor returns the key that signs for an application: its own, or the tenant's. An own key stays in memory under
// its certificate. The error is apperr.Unavailable if the applications service does not answer.
func (p *Provider) signerFor(ctx context.Context, c questions.Client) (*signer, error) {
	if c.SAML.SigningCert == "" {
		k, err := p.tenant(ctx)
		if err != nil {
			return nil, err
		}
		return k.signer, nil
	}
	sum := sha256.Sum256([]byte(c.SAML.SigningCert))
	name := request.Tenant(ctx) + "/" + c.AppID + "/" + hex.EncodeToString(sum[:])
	if s, ok := p.own.Get(name); ok {
		return s, nil
	}
	answer, err := p.SigningKey(ctx, questions.SigningKeyQuestion{AppID: c.AppID, To: p.Recipient.Key()})
	if err != nil {
		return nil, fmt.Errorf("the SAML key of an application: %w", err)
	}
	key, err := p.Recipient.Open(answer.Sealed, useOfSigningKey)
	if err != nil {
		return nil, fmt.Errorf("the SAML key of an application: %w", err)
	}
	s, err := signerOf(c.SAML.SigningCert, key.Reveal())
	if err != nil {
		return nil, fmt.Errorf("the SAML key of an application: %w", err)
	}
	p.own.Set(name, s)
	return s, nil
}

// methodOf is the algorithm that an application is signed for with: the configured one if it is of RSA with SHA-2 under
// PKCS #1, or else rsa-sha256, which all products know.
func methodOf(c questions.Client) string {
	for method := range signatureMethods {
		_, short, _ := strings.Cut(method, "#")
		if c.SAML.SignatureAlgorithm == method || strings.EqualFold(c.SAML.SignatureAlgorithm, short) {
			return method
		}
	}
	return dsig.RSASHA256SignatureMethod
}

func (s *signer) context(method string) (*dsig.SigningContext, error) {
	sign, err := dsig.NewSigningContext(crypto.Signer(s.key), [][]byte{s.cert})
	if err != nil {
		return nil, err
	}
	sign.Canonicalizer = dsig.MakeC14N10ExclusiveCanonicalizerWithPrefixList("")
	return sign, sign.SetSignatureMethod(method) // the library's own default depends on its version
}

// sign puts a signature into an element, behind its Issuer, where the schema wants it (SAML core §3.2.1). The element
// becomes canonical.
func (s *signer) sign(el *etree.Element, method string) error {
	sign, err := s.context(method)
	if err != nil {
		return err
	}
	signature, err := sign.ConstructSignature(el, true)
	if err != nil {
		return err
	}
	el.InsertChildAt(el.ChildElements()[0].Index()+1, signature)
	return nil
}

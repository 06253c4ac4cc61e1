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

const (
	firstKey = "signing" // the id of a tenant's first key: of several replicas, only one can insert it
	keyBits  = 2048
	keyYears = 20 // products stop when a certificate in their settings expires
	// reread is how long a replica uses the keys of a tenant that it has read.
	reread = time.Minute
	// useOfSigningKey is the use that keys of applications are sealed for.
	useOfSigningKey = "applications.signing-key"
)

// signer signs with a key of RSA.
type signer struct {
	key  *rsa.PrivateKey
	cert []byte // DER
}

// tenantKey is a tenant's active key, ready for use, with what metadata tells of all its keys.
type tenantKey struct {
	*signer
	salt  []byte
	certs [][]byte // DER, of all keys, the active one first
	read  clock.Time
}

// fresh reports whether the keys were read within reread.
func (k *tenantKey) fresh(now clock.Time) bool {
	age := now.Sub(k.read)
	return age >= 0 && age < reread
}

// tenant returns the active key of the tenant, and makes it if there is none. Of several replicas that make one at
// once, all use the one that was stored first. The error is apperr.NotFound for a tenant without applications.
func (p *Provider) tenant(ctx context.Context) (*tenantKey, error) {
	tenant := request.Tenant(ctx)
	if k, ok := p.tenants.Get(tenant); ok && k.fresh(p.Store.Now()) {
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

// load reads the tenant's keys. The error is apperr.NotFound if there are none.
func (p *Provider) load(ctx context.Context) (*tenantKey, error) {
	now := p.Store.Now()
	page, err := keys.Page(ctx, p.Store, docstore.Query{Limit: maxOfTenant})
	if err != nil {
		return nil, err
	}
	all := make([]*Key, len(page.Docs))
	for i := range page.Docs {
		if all[i], err = page.Docs[i].Value(); err != nil {
			return nil, err
		}
	}
	active, err := inOrder(all)
	if err != nil {
		return nil, err
	}
	secrets, err := keys.RevealAll(ctx, p.Store, active.ID)
	if err != nil {
		return nil, err
	}
	if len(secrets) == 0 { // it was replaced and deleted between the two reads
		return nil, apperr.Away("the SAML key of the tenant", nil)
	}
	s, err := signerOf(active.Certificate, secrets[memberKey].Reveal())
	if err != nil {
		return nil, err
	}
	k := &tenantKey{signer: s, read: now}
	for _, of := range all {
		cert, err := of.x509()
		if err != nil {
			return nil, err
		}
		k.certs = append(k.certs, cert.Raw)
	}
	k.salt, err = base64.StdEncoding.DecodeString(secrets[memberSalt].Reveal())
	return k, err
}

// make stores the tenant's first key, unless there is one.
func (p *Provider) make(ctx context.Context) error {
	k, err := p.draw(ctx)
	if err != nil {
		return err
	}
	random := make([]byte, 32)
	_, _ = rand.Read(random) // never fails (crypto/rand)
	k.ID, k.Status, k.Salt = firstKey, Active, secret.NewText(base64.StdEncoding.EncodeToString(random))
	err = docstore.Do(ctx, p.Store, func(tx *docstore.Tx) error {
		found, err := keys.LoadWhere(ctx, tx, docstore.Filter{}, "", 1)
		if err != nil || len(found) > 0 {
			return err
		}
		k.TimeActivated = tx.Now
		_, err = keys.Insert(ctx, tx, k)
		return err
	})
	if _, first := errors.AsType[*docstore.DuplicateError](err); first { // another replica's
		return nil
	}
	return err
}

// draw makes a key pair with its certificate.
func (p *Provider) draw(ctx context.Context) (*Key, error) {
	private, err := p.newKey()
	if err != nil {
		return nil, err
	}
	cert, err := certify(private, request.Tenant(ctx), p.Store.Now())
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, err
	}
	k := &Key{
		Certificate: asPEM("CERTIFICATE", cert), PrivateKey: secret.NewText(asPEM("PRIVATE KEY", der)),
	}
	k.complete()
	return k, nil
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
	cert, err := certificateOf(certificate)
	keyBlock, _ := pem.Decode([]byte(key))
	if err != nil || keyBlock == nil {
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

// certificateOf reads a certificate in PEM.
func certificateOf(text string) (*x509.Certificate, error) {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, errKey
	}
	return x509.ParseCertificate(block.Bytes)
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

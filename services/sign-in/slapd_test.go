package signin_test

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/testkit/wait"
)

const slapdConfig = `include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/inetorgperson.schema
modulepath /usr/lib/ldap
moduleload back_mdb
moduleload memberof
TLSCertificateFile cert.pem
TLSCertificateKeyFile key.pem
security simple_bind=128
database mdb
maxsize 10485760
directory data
suffix "dc=acme,dc=test"
rootdn "cn=admin,dc=acme,dc=test"
rootpw admin
overlay memberof
access to attrs=userPassword by anonymous auth by * none
access to * by dn.exact="cn=reader,dc=acme,dc=test" read by self read by anonymous auth by * none
`

const slapdEntries = `dn: dc=acme,dc=test
objectClass: domain
dc: acme

dn: cn=reader,dc=acme,dc=test
objectClass: organizationalRole
objectClass: simpleSecurityObject
cn: reader
userPassword: reader's password

dn: ou=people,dc=acme,dc=test
objectClass: organizationalUnit
ou: people

dn: uid=li.wei,ou=people,dc=acme,dc=test
objectClass: inetOrgPerson
uid: li.wei
cn:: 5p2O5Lyf
sn:: 5p2O
mail: li.wei@acme.test
departmentNumber: 42
userPassword: 她的密码
`

// slapdGroup comes later: only a directory that runs notes who is a member.
const slapdGroup = `dn: cn=staff,dc=acme,dc=test
objectClass: groupOfNames
cn: staff
member: uid=li.wei,ou=people,dc=acme,dc=test
`

// asAdmin runs a program of OpenLDAP that changes a directory.
func asAdmin(t *testing.T, address, input, program string, args ...string) {
	t.Helper()
	args = append([]string{"-x", "-ZZ", "-H", "ldap://" + address, "-D", "cn=admin,dc=acme,dc=test", "-w", "admin"},
		args...)
	c := exec.CommandContext(t.Context(), program, args...)
	c.Env, c.Stdin = append(c.Environ(), "LDAPTLS_REQCERT=never"), strings.NewReader(input)
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// startSlapd starts an unmodified OpenLDAP, for as long as the test lasts. It takes passwords only over TLS.
func startSlapd(t *testing.T) (address, certificate string) {
	t.Helper()
	const slapd = "/usr/sbin/slapd"
	for _, program := range []string{slapd, "ldapadd"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("slapd and ldap-utils are not installed")
		}
	}
	dir := t.TempDir()
	certified := httptest.NewTLSServer(nil) // only for its certificate
	certified.Close()
	key, err := x509.MarshalPKCS8PrivateKey(certified.TLS.Certificates[0].PrivateKey)
	require.NoError(t, err)
	certificate = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certified.Certificate().Raw}))
	for name, text := range map[string]string{
		"cert.pem": certificate, "entries.ldif": slapdEntries, "slapd.conf": slapdConfig,
		"key.pem": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})),
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	require.NoError(t, os.Mkdir(filepath.Join(dir, "data"), 0o700))
	load := exec.CommandContext(t.Context(), slapd, "-Ta", "-f", "slapd.conf", "-l", "entries.ldif")
	load.Dir = dir
	out, err := load.CombinedOutput()
	require.NoError(t, err, "%s", out)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address = l.Addr().String()
	require.NoError(t, l.Close())
	ctx, stop := context.WithCancel(t.Context())
	server := exec.CommandContext(ctx, slapd, "-d", "0", "-f", "slapd.conf", "-h", "ldap://"+address)
	server.Dir = dir
	require.NoError(t, server.Start())
	t.Cleanup(func() {
		stop()
		_ = server.Wait() // it was stopped
	})
	wait.Until(t, func() bool {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	return address, certificate
}

// An unmodified directory that others have written: somebody who has never been here signs in with the name and the
// password there, over StartTLS, and is known again after a change of the name.
func TestUnmodifiedOpenLDAP(t *testing.T) {
	t.Parallel()
	address, certificate := startSlapd(t)
	w, _ := withDirectory(t, `{"create": "1", "domains": ["acme.test"], "claim_mapping": {
		"employee_number": "departmentNumber",
		"sys_ext_props.staff": "claims.memberOf.exists(g, g.startsWith(\"cn=staff,\")) ? \"yes\" : \"no\""}}`)
	fields := with(w.connections[corp], "Url", "ldap://"+address)
	delete(fields, "StartTls")
	fields["CaCertificate"] = certificate
	w.connections[corp] = fields
	asAdmin(t, address, slapdGroup, "ldapadd")
	b := w.browser().get(w.authorize("portal")).asks()
	b.types("li.wei", "wrong").shows(200, "do not match").types("li.wei", "她的密码").answered(callback)
	require.Equal(t, []object{{
		"username": "li.wei", "display_name": "李伟", "email": "li.wei@acme.test", "email_verified": true,
		"employee_number": "42", "sys_ext_props": object{"staff": "yes"},
	}}, w.changes)
	asAdmin(t, address, "", "ldapmodrdn", "-r", "uid=li.wei,ou=people,dc=acme,dc=test", "uid=wei.li")
	w.browser().get(w.authorize("wiki")).asks().types("wei.li", "她的密码").answered(wikiCallback)
	require.Len(t, w.changes, 1)
	w.browser().get(w.authorize("wiki")).asks().types("li.wei", "她的密码").shows(200, "do not match")
}

package charts_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"

	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
)

// authority signs certificates.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  string
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, IsCA: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign}
	a.key = a.newKey()
	der := a.sign(template, template, a.key)
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	a.cert, a.pem = cert, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	return a
}

func (a *authority) newKey() *ecdsa.PrivateKey {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	return key
}

func (a *authority) sign(template, parent *x509.Certificate, key *ecdsa.PrivateKey) []byte {
	a.t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	return der
}

// issue makes a Secret as cert-manager does, for hosts.
func (a *authority) issue(serial int64, name string, hosts ...string) map[string]string {
	a.t.Helper()
	key := a.newKey()
	der := a.sign(&x509.Certificate{SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name}, DNSNames: hosts,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		KeyUsage:    x509.KeyUsageDigitalSignature}, a.cert, key)
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	return map[string]string{"ca.crt": a.pem,
		"tls.crt": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		"tls.key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}))}
}

// certify plays cert-manager: it makes the Secrets of the release db, for the hosts that it asks for.
func (g *ground) certify(c *cluster, ca *authority) {
	g.t.Helper()
	for i, side := range []string{"client", "peer"} {
		var hosts []string
		for _, name := range c.objects["Certificate/db-quorate-"+side]["spec"].(map[string]any)["dnsNames"].([]any) {
			hosts = append(hosts, name.(string))
		}
		g.secrets["db-quorate-"+side+"-tls"] = ca.issue(int64(2+i), side, hosts...)
	}
}

// TestMembers_tlsOfMembersAlone plays the release of docs/kubernetes-chart.md: members show certificates, and clients need none.
func TestMembers_tlsOfMembersAlone(t *testing.T) {
	g := newGround(t)
	c := newCluster(t)
	r := c.mustInstall("db", "certManager: {enabled: true}\nreplicaCount: 1")
	g.keepSecrets(r)
	g.certify(c, newAuthority(t))
	p := g.startMember(r, 0)
	p.awaitReady()
	if status, said := g.runJob(r, "auth"); status != 0 {
		t.Fatalf("the job that turns authentication on: %d, %s", status, said)
	}
}

// TestMembers_tls plays a release with cert-manager's certificates, whose Secrets name the hosts that the release asks for:
// members and clients show certificates, and the release grows.
func TestMembers_tls(t *testing.T) {
	g := newGround(t)
	const values = "certManager: {enabled: true}\nconsole: {enabled: true}\n" +
		"auth: {rbac: {rootPassword: secret}, client: {enableAuthentication: true}}\nreplicaCount: "
	c := newCluster(t)
	r := c.mustInstall("db", values+"3")
	g.keepSecrets(r)
	ca := newAuthority(t)
	g.certify(c, ca)
	for i := range 5 {
		g.number("db-quorate", i)
	}
	var pods []*pod
	for i := range 3 {
		pods = append(pods, g.startMember(r, i))
	}
	for _, p := range pods {
		p.awaitReady()
	}
	if status, said := g.runJob(r, "auth"); status != 0 {
		t.Fatalf("the job that turns authentication on: %d, %s", status, said)
	}
	if out := pods[1].exec("secret", "status"); !strings.Contains(out, "db-quorate-2") {
		t.Errorf("status in a pod says %q", out)
	}
	secret := g.secrets["db-quorate-client-tls"]
	own, err := tls.X509KeyPair([]byte(secret["tls.crt"]), []byte(secret["tls.key"]))
	if err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM([]byte(ca.pem))
	toFirst := func(ctx context.Context, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", pods[0].address+":2379")
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"https://db-quorate.prod.svc:2379"}, Logger: zap.NewNop(),
		Username: "root", Password: "secret", DialTimeout: patience, DialOptions: []grpc.DialOption{grpc.WithContextDialer(toFirst)},
		TLS: &tls.Config{Certificates: []tls.Certificate{own}, RootCAs: trusted}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	acked := fill(t, client, "tls")

	// A newcomer that no job has added is admitted for its certificate.
	r = c.mustUpgrade("db", values+"5")
	pods = append(pods, g.startMember(r, 3))
	pods[3].awaitReady()
	if status, said := g.runJob(r, "scale"); status != 0 {
		t.Fatalf("the job that adds members: %d, %s", status, said)
	}
	pods = append(pods, g.startMember(r, 4))
	pods[4].awaitReady()
	if got := names(t, client); len(got) != 5 {
		t.Errorf("got the members %q", got)
	}
	check(t, client, acked)
	if _, text := pods[0].probe(t.Context(), "/metrics"); !strings.Contains(text, "etcd_server_has_leader 1") {
		t.Error("no metrics without a certificate at their own port")
	}
}

// TestMembers_backup runs the job that starts the backup, as an installation and an upgrade do.
func TestMembers_backup(t *testing.T) {
	g := newGround(t)
	r := newCluster(t).mustInstall("db", "auth: {rbac: {create: false}}\nreplicaCount: 1\n"+
		"disasterRecovery: {enabled: true}\nbackup: {keep: 14d, baseEvery: 1h}")
	p := g.startMember(r, 0)
	place := filepath.Join(p.root, "snapshots")
	if err := os.Mkdir(place, 0o770); err != nil {
		t.Fatal(err)
	}
	setGroup(t, place)
	p.awaitReady()
	for range 2 {
		var status int
		var said string
		g.until("the job succeeds, once the feature level has risen", func(context.Context) bool {
			status, said = g.runJob(r, "backup")
			return status == 0
		})
		if !strings.Contains(said, "file:///snapshots") {
			t.Errorf("the job says %q", said)
		}
	}
	g.until("a base is at the place", func(context.Context) bool {
		found, _ := filepath.Glob(filepath.Join(place, "base", "*", "*"))
		return len(found) > 0
	})
	p.kill(syscall.SIGTERM)
}

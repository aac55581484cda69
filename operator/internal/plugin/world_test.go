package plugin

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
	"k8s.io/utils/ptr"

	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/etcdctl"
)

func TestMain(m *testing.M) {
	if os.Args[0] == CalledEtcdctl { // the child of a test
		os.Exit(etcdctl.Run("etcdctl", os.Args[1:]))
	}
	cobra.EnableCommandSorting = false
	os.Exit(m.Run())
}

// world is a fake API server with one namespace, db, whose pods are fake members.
type world struct {
	*httptest.Server
	mu       sync.Mutex
	answers  map[string]any    // by path
	denied   map[string]bool   // paths
	ports    map[string]string // of pods: where their members listen; absent: nothing listens
	forwards int
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{answers: map[string]any{}, denied: map[string]bool{}, ports: map[string]string{}}
	w.Server = httptest.NewServer(w)
	t.Cleanup(w.Close)
	return w
}

const inDB = "/api/v1/namespaces/db/"

func (w *world) ServeHTTP(out http.ResponseWriter, in *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	pod, forwards := strings.CutSuffix(in.URL.Path, "/portforward")
	switch answer, known := w.answers[in.URL.Path]; {
	case w.denied[in.URL.Path]:
		reply(out, http.StatusForbidden, metav1.Status{Status: "Failure", Reason: metav1.StatusReasonForbidden, Code: http.StatusForbidden,
			Message: in.URL.Path + " is forbidden: User \"u\" cannot do that"})
	case forwards && strings.Contains(in.Header.Get("Upgrade"), "SPDY"):
		w.forwards++
		out.Header().Set(httpstream.HeaderProtocolVersion, "portforward.k8s.io")
		f := &forwarder{to: w.ports[strings.TrimPrefix(pod, inDB+"pods/")], faults: map[string]httpstream.Stream{}}
		spdy.NewResponseUpgrader().UpgradeResponse(out, in, f.stream)
	case forwards:
		http.Error(out, "no websockets here", http.StatusBadRequest)
	case known:
		if list, ok := answer.(corev1.PodList); ok {
			answer = selected(list, in.URL.Query().Get("labelSelector"))
		}
		reply(out, http.StatusOK, answer)
	default:
		reply(out, http.StatusNotFound, metav1.Status{Status: "Failure", Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound,
			Message: in.URL.Path + " not found"})
	}
}

func reply(out http.ResponseWriter, code int, answer any) {
	if s, ok := answer.(metav1.Status); ok {
		s.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
		answer = s
	}
	out.Header().Set("Content-Type", "application/json")
	out.WriteHeader(code)
	_ = json.NewEncoder(out).Encode(answer)
}

func selected(list corev1.PodList, selector string) corev1.PodList {
	found := corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}}
	want, err := metav1.ParseToLabelSelector(selector)
	if err != nil {
		return found
	}
	matches, err := metav1.LabelSelectorAsSelector(want)
	for _, p := range list.Items {
		if err == nil && matches.Matches(labelsOf(p)) {
			found.Items = append(found.Items, p)
		}
	}
	return found
}

// forwarder is a kubelet's end of a tunnel.
type forwarder struct {
	to     string
	mu     sync.Mutex
	faults map[string]httpstream.Stream
}

func (f *forwarder) stream(s httpstream.Stream, replied <-chan struct{}) error {
	id := s.Headers().Get(corev1.PortForwardRequestIDHeader)
	f.mu.Lock()
	defer f.mu.Unlock()
	if s.Headers().Get(corev1.StreamType) == corev1.StreamTypeError {
		f.faults[id] = s
		return nil
	}
	faults := f.faults[id]
	go func() {
		<-replied
		defer func() { _ = faults.Close() }()
		conn, err := net.Dial("tcp", f.to)
		if f.to == "" || err != nil {
			_, _ = io.WriteString(faults, "connection refused at port "+s.Headers().Get(corev1.PortHeader))
			_ = s.Close()
			return
		}
		go func() {
			_, _ = io.Copy(conn, s)
			_ = conn.Close()
		}()
		_, _ = io.Copy(s, conn)
		_ = s.Close()
	}()
	return nil
}

// connect reaches the world.
func (w *world) connect(*Options) (*Kubernetes, error) {
	k := &Kubernetes{Config: &rest.Config{Host: w.URL}, Namespace: "db"}
	var err error
	if k.Client, err = kubernetes.NewForConfig(k.Config); err != nil {
		return nil, err
	}
	k.Resources, err = dynamic.NewForConfig(k.Config)
	return k, err
}

// run runs a line of the plugin and returns its status and all that it printed.
func (w *world) run(t *testing.T, line string) (int, string) {
	t.Helper()
	out, err := os.CreateTemp(t.TempDir(), "out") // a file: a child writes to it, too
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = out.Close() }()
	environ := append(os.Environ(), "ETCDCTL_CACERT=/absent", "ETCDCTL_ENDPOINTS=other:2379", "QUORATE_USER=other")
	streams := command.Streams{In: strings.NewReader(""), Out: out, Err: out, Environ: environ}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	code := Run(ctx, strings.Fields(line), streams, w.connect)
	said, err := os.ReadFile(out.Name())
	if err != nil {
		t.Fatal(err)
	}
	return code, string(said)
}

// pod adds a running pod of a cluster, with a member behind it.
func (w *world) pod(instance, name, listens string, change ...func(*corev1.Pod)) {
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "db", Labels: map[string]string{instanceLabel: instance}}}
	p.Spec.Hostname, p.Spec.Subdomain = name, instance+"-members"
	p.Spec.Containers = []corev1.Container{{Name: "quorate", Ports: []corev1.ContainerPort{{Name: "client", ContainerPort: 2379}}}}
	p.Status.Phase = corev1.PodRunning
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "quorate", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	set := "/apis/apps/v1/namespaces/db/statefulsets/"
	base, ordinal, _ := strings.Cut(name, "-")
	p.OwnerReferences = []metav1.OwnerReference{{Kind: "StatefulSet", Name: base, UID: types.UID("set-" + base), Controller: ptr.To(true)}}
	for _, c := range change {
		c(&p)
	}
	if p.OwnerReferences[0].Kind == "StatefulSet" {
		number, _ := strconv.Atoi(ordinal)
		w.answers[set+base] = appsv1.StatefulSet{TypeMeta: metav1.TypeMeta{Kind: "StatefulSet", APIVersion: "apps/v1"},
			ObjectMeta: metav1.ObjectMeta{Name: base, UID: types.UID("set-" + base), Labels: map[string]string{instanceLabel: instance}},
			Spec: appsv1.StatefulSetSpec{Replicas: ptr.To(int32(number + 1)), Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Annotations: p.Annotations}, Spec: p.Spec}}}
	}
	list, _ := w.answers[inDB+"pods"].(corev1.PodList)
	list.Items = append(list.Items, p)
	w.answers[inDB+"pods"] = list
	w.ports[name] = listens
}

func (w *world) secret(name string, data map[string]string) {
	s := corev1.Secret{TypeMeta: metav1.TypeMeta{Kind: "Secret", APIVersion: "v1"}, ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string][]byte{}}
	for key, value := range data {
		s.Data[key] = []byte(value)
	}
	w.answers[inDB+"secrets/"+name] = s
}

// fakeMember answers reads, member lists and logins.
type fakeMember struct {
	pb.UnimplementedKVServer
	pb.UnimplementedClusterServer
	pb.UnimplementedAuthServer
	name     string
	password string // of root; empty: nobody logs in
}

func (f *fakeMember) start(t *testing.T, config *tls.Config) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var options []grpc.ServerOption
	if config != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(config)))
	}
	server := grpc.NewServer(options...)
	pb.RegisterKVServer(server, f)
	pb.RegisterClusterServer(server, f)
	pb.RegisterAuthServer(server, f)
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
	return l.Addr().String()
}

func (f *fakeMember) known(ctx context.Context) error {
	if in, _ := metadata.FromIncomingContext(ctx); f.password != "" && strings.Join(in.Get("token"), "") != "good" {
		return status.Error(codes.InvalidArgument, "etcdserver: user name is empty")
	}
	return nil
}

func (f *fakeMember) Range(ctx context.Context, in *pb.RangeRequest) (*pb.RangeResponse, error) {
	if err := f.known(ctx); err != nil {
		return nil, err
	}
	kv := &mvccpb.KeyValue{Key: in.Key, Value: []byte("of " + f.name), CreateRevision: 2, ModRevision: 2, Version: 1}
	return &pb.RangeResponse{Header: &pb.ResponseHeader{Revision: 2}, Kvs: []*mvccpb.KeyValue{kv}, Count: 1}, nil
}

func (f *fakeMember) UserList(ctx context.Context, _ *pb.AuthUserListRequest) (*pb.AuthUserListResponse, error) {
	return &pb.AuthUserListResponse{Header: &pb.ResponseHeader{}, Users: []string{"root", "of-" + f.name}}, f.known(ctx)
}

func (f *fakeMember) Authenticate(_ context.Context, in *pb.AuthenticateRequest) (*pb.AuthenticateResponse, error) {
	if in.Name != "root" || in.Password != f.password {
		return nil, status.Error(codes.InvalidArgument, "etcdserver: authentication failed, invalid user ID or password")
	}
	return &pb.AuthenticateResponse{Header: &pb.ResponseHeader{}, Token: "good"}, nil
}

// issue makes an authority and a certificate of it for some names, in PEM.
func issue(t *testing.T, names ...string) (authority, certificate, key string) {
	t.Helper()
	root, rootKey := sign(t, &x509.Certificate{IsCA: true, KeyUsage: x509.KeyUsageCertSign, BasicConstraintsValid: true}, nil, nil)
	leaf, leafKey := sign(t, &x509.Certificate{DNSNames: names, Subject: pkix.Name{CommonName: "member"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}, root, rootKey)
	der, err := x509.MarshalECPrivateKey(leafKey)
	if err != nil {
		t.Fatal(err)
	}
	text := func(kind string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	return text("CERTIFICATE", root.Raw), text("CERTIFICATE", leaf.Raw), text("EC PRIVATE KEY", der)
}

func sign(t *testing.T, c, parent *x509.Certificate, by *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c.SerialNumber, c.NotBefore, c.NotAfter = big.NewInt(1), time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	if parent == nil {
		parent, by = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, by)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return signed, key
}

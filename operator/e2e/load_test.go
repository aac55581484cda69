package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/quorate/quorate/operator/internal/objects"
)

// load writes one key after the other, and keeps what was acknowledged.
type load struct {
	sync.Mutex
	creds   credentials.TransportCredentials
	pause   time.Duration               // after each write
	conns   map[string]*grpc.ClientConn // by address
	acked   []string
	failed  int
	why     error // the last failed
	last    time.Time
	longest time.Duration
}

func (l *load) reset() {
	l.Lock()
	defer l.Unlock()
	l.failed, l.longest, l.last = 0, 0, time.Now()
}

func (l *load) seen() (failed int, longest time.Duration) {
	l.Lock()
	defer l.Unlock()
	return l.failed, max(l.longest, time.Since(l.last))
}

// reason is why the last of the writes failed that did.
func (l *load) reason() error {
	l.Lock()
	defer l.Unlock()
	return l.why
}

// connect prepares the load: members show certificates for the Service of clients.
func (s *stage) connect() {
	secret := &corev1.Secret{}
	must(s.T, s.api.Get(s.Context(), client.ObjectKey{Namespace: s.c.Namespace, Name: s.c.Name + "-ca"}, secret))
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(secret.Data["ca.crt"])
	s.load = &load{conns: map[string]*grpc.ClientConn{}, last: time.Now(), creds: credentials.NewTLS(&tls.Config{RootCAs: roots,
		ServerName: s.c.Name + "." + s.c.Namespace + ".svc"})}
}

// endpoints are those of the Service of clients: of pods of the cluster that are ready.
func (s *stage) endpoints() (out []string) {
	s.Lock()
	defer s.Unlock()
	own := "." + objects.MembersService(s.c) + "." + s.c.Namespace + "."
	for _, p := range s.procs {
		if p.ready && !p.ended() && strings.Contains(p.host, own) {
			out = append(out, p.address+":2379")
		}
	}
	return out
}

// any asks one member after the other, as a client does that knows them all.
func (s *stage) any(ctx context.Context, ask func(context.Context, etcdserverpb.KVClient) error) error {
	err := errors.New("no member runs")
	for _, address := range s.endpoints() {
		conn := s.load.conns[address]
		if conn == nil {
			if conn, err = grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(s.load.creds),
				grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(1<<28))); err != nil {
				return err
			}
			s.load.conns[address] = conn
		}
		asking, cancel := context.WithTimeout(ctx, 3*time.Second)
		if asking, err = s.login(asking, conn); err == nil {
			err = ask(asking, etcdserverpb.NewKVClient(conn))
		}
		cancel()
		if err == nil {
			return nil
		}
	}
	return err
}

// login logs in as the user of the load, where there are users.
func (s *stage) login(ctx context.Context, conn *grpc.ClientConn) (context.Context, error) {
	if s.c.Spec.Auth == nil {
		return ctx, nil
	}
	answer, err := etcdserverpb.NewAuthClient(conn).Authenticate(ctx, &etcdserverpb.AuthenticateRequest{Name: "load", Password: "secret"})
	return metadata.AppendToOutgoingContext(ctx, "token", answer.GetToken()), err
}

func (s *stage) write(ctx context.Context) {
	for i := 0; ctx.Err() == nil; i++ {
		key := fmt.Sprintf("load/%d", i)
		err := s.any(ctx, func(ctx context.Context, kv etcdserverpb.KVClient) error {
			_, err := kv.Put(ctx, &etcdserverpb.PutRequest{Key: []byte(key), Value: []byte(key)})
			return err
		})
		s.load.Lock()
		if now := time.Now(); err == nil {
			s.load.acked = append(s.load.acked, key)
			s.load.longest, s.load.last = max(s.load.longest, now.Sub(s.load.last)), now
		} else {
			s.load.failed, s.load.why = s.load.failed+1, err
		}
		s.load.Unlock()
		if s.load.pause > 0 {
			select {
			case <-ctx.Done():
			case <-time.After(s.load.pause):
			}
		}
	}
}

// lost returns acknowledged writes that are not there.
func (s *stage) lost() (missing []string) {
	s.Helper()
	there := map[string]bool{}
	must(s.T, s.any(s.Context(), func(ctx context.Context, kv etcdserverpb.KVClient) error {
		answer, err := kv.Range(ctx, &etcdserverpb.RangeRequest{Key: []byte("load/"), RangeEnd: []byte("load0"), KeysOnly: true})
		for _, pair := range answer.GetKvs() {
			there[string(pair.Key)] = true
		}
		return err
	}))
	for _, key := range s.load.acked {
		if !there[key] {
			missing = append(missing, key)
		}
	}
	return missing
}

// Package embed stands in for etcd's package of this name in Kubernetes' tests: it has what they use of it, and starts a
// process of $QUORATE for each server.
package embed

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.uber.org/zap"
)

// Config is what the tests set of etcd's.
type Config struct {
	Name, Dir, InitialCluster             string
	ListenPeerUrls, AdvertisePeerUrls     []url.URL
	ListenClientUrls, AdvertiseClientUrls []url.URL
	ClientTLSInfo                         transport.TLSInfo
	ZapLoggerBuilder                      func(*Config) error
	WatchProgressNotifyInterval           time.Duration
	QuotaBackendBytes                     int64
	UnsafeNoFsync                         bool
}

// NewConfig returns one with etcd's defaults.
func NewConfig() *Config { return &Config{Name: "default"} }

// InitialClusterFromName is the cluster of this member alone.
func (c *Config) InitialClusterFromName(name string) string {
	return name + "=" + c.AdvertisePeerUrls[0].String()
}

// NewZapLoggerBuilder builds nothing: the process logs into its directory.
func NewZapLoggerBuilder(*zap.Logger) func(*Config) error { return func(*Config) error { return nil } }

// Etcd is a running process.
type Etcd struct {
	Server *Server
	cmd    *exec.Cmd
	exited chan struct{}
	errc   chan error
	log    string
}

// Server is what the tests ask of it.
type Server struct {
	ready chan struct{}
	urls  []string
	stop  func()
}

// ReadyNotify is closed once it serves.
func (s *Server) ReadyNotify() <-chan struct{} { return s.ready }

// Stop ends it.
func (s *Server) Stop() { s.stop() }

// Cluster tells where it serves.
func (s *Server) Cluster() Cluster { return Cluster{s.urls} }

// Cluster is the cluster of one server.
type Cluster struct{ urls []string }

// ClientURLs are where it serves.
func (c Cluster) ClientURLs() []string { return c.urls }

// StartEtcd starts a process.
func StartEtcd(c *Config) (*Etcd, error) {
	binary := os.Getenv("QUORATE")
	if binary == "" {
		return nil, errors.New("embed: set QUORATE to the server's binary")
	}
	args := []string{
		"--name=" + c.Name, "--data-dir=" + filepath.Join(c.Dir, "data"), "--initial-cluster=" + c.InitialCluster,
		"--listen-client-urls=" + c.ListenClientUrls[0].String(), "--listen-peer-urls=" + c.ListenPeerUrls[0].String(),
		"--advertise-client-urls=" + c.AdvertiseClientUrls[0].String(),
		"--initial-advertise-peer-urls=" + c.AdvertisePeerUrls[0].String(),
	}
	if c.UnsafeNoFsync {
		args = append(args, "--unsafe-no-fsync")
	}
	if c.WatchProgressNotifyInterval > 0 {
		args = append(args, "--watch-progress-notify-interval="+c.WatchProgressNotifyInterval.String())
	}
	if c.QuotaBackendBytes > 0 {
		args = append(args, fmt.Sprintf("--quota-backend-bytes=%d", c.QuotaBackendBytes))
	}
	if !c.ClientTLSInfo.Empty() {
		args = append(args, "--cert-file="+c.ClientTLSInfo.CertFile, "--key-file="+c.ClientTLSInfo.KeyFile)
	}
	e := &Etcd{cmd: exec.Command(binary, args...), exited: make(chan struct{}), errc: make(chan error, 1),
		log: filepath.Join(c.Dir, "log")}
	log, err := os.Create(e.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	e.cmd.Stdout, e.cmd.Stderr = log, log
	e.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := e.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = e.cmd.Wait()
		close(e.exited)
	}()
	e.Server = &Server{ready: make(chan struct{}), urls: []string{c.AdvertiseClientUrls[0].String()}, stop: e.Close}
	go e.await(c.ListenClientUrls[0].String() + "/health")
	return e, nil
}

// await closes ready once the process is healthy, and reports if it ends before.
func (e *Etcd) await(health string) {
	for {
		if answer, err := http.Get(health); err == nil {
			_, _ = io.Copy(io.Discard, answer.Body)
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				close(e.Server.ready)
				return
			}
		}
		select {
		case <-e.exited:
			said, _ := os.ReadFile(e.log)
			e.errc <- fmt.Errorf("embed: the server ended: %s", bytes.TrimSpace(said[max(0, len(said)-1000):]))
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Err tells of a server that ended by itself.
func (e *Etcd) Err() <-chan error { return e.errc }

// Close ends it.
func (e *Etcd) Close() {
	_ = e.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-e.exited:
	case <-time.After(10 * time.Second):
		_ = e.cmd.Process.Kill()
		<-e.exited
	}
	select {
	case e.errc <- nil:
	default:
	}
}

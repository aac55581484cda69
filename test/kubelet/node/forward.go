package node

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"

	"github.com/quorate/quorate/test/kubelet/network"
)

// kubeletPort is where the API server reaches the kubelet, to forward ports of pods.
const (
	kubeletPort     = 10250
	forwardProtocol = "portforward.k8s.io"
)

// A finder returns the network of a pod that runs here; nil if it does not.
type finder func(namespace, name string) *network.Sandbox

// serve answers, at an address, the API server's calls for ports of pods until it is closed. It asks for no certificate.
func serve(address string, find finder) (io.Closer, error) {
	certificate, err := selfSigned()
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(address, strconv.Itoa(kubeletPort)))
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /portForward/{namespace}/{pod}", find.forward)
	mux.HandleFunc("GET /portForward/{namespace}/{pod}", find.forward)
	server := &http.Server{Handler: mux, ErrorLog: log.New(io.Discard, "", 0), ReadHeaderTimeout: callTime,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}}
	go server.ServeTLS(listener, "", "")
	return server, nil
}

// selfSigned is a certificate that the API server does not verify, since it was told of no authority of kubelets.
func selfSigned() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(48 * time.Hour)}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	return tls.Certificate{Certificate: [][]byte{signed}, PrivateKey: key}, err
}

func (find finder) forward(out http.ResponseWriter, in *http.Request) {
	sandbox := find(in.PathValue("namespace"), in.PathValue("pod"))
	if sandbox == nil {
		http.Error(out, "this node does not run the pod", http.StatusNotFound)
		return
	}
	if _, err := httpstream.Handshake(in, out, []string{forwardProtocol}); err != nil {
		return // it has answered
	}
	f := &forwarder{sandbox: sandbox, faults: map[string]httpstream.Stream{}}
	conn := spdy.NewResponseUpgrader().UpgradeResponse(out, in, f.stream)
	if conn == nil {
		return
	}
	defer conn.Close()
	<-conn.CloseChan()
}

// A forwarder is the end of one connection of the API server, which leads to ports of one pod.
type forwarder struct {
	sandbox *network.Sandbox
	mu      sync.Mutex
	faults  map[string]httpstream.Stream // by the id of the request, until its data come
}

// stream takes a stream. Each request has two: first that of its fault, then that of its data.
func (f *forwarder) stream(s httpstream.Stream, replied <-chan struct{}) error {
	id := s.Headers().Get(corev1.PortForwardRequestIDHeader)
	f.mu.Lock()
	defer f.mu.Unlock()
	if s.Headers().Get(corev1.StreamType) == corev1.StreamTypeError {
		f.faults[id] = s
		return nil
	}
	port, err := strconv.ParseUint(s.Headers().Get(corev1.PortHeader), 10, 16)
	if err != nil {
		return fmt.Errorf("the port: %w", err)
	}
	fault := f.faults[id]
	if fault == nil {
		return errors.New("data came before the stream of faults")
	}
	delete(f.faults, id)
	go func() {
		<-replied
		if err := f.carry(s, int(port)); err != nil {
			io.WriteString(fault, err.Error())
		}
		fault.Close()
		s.Close()
	}()
	return nil
}

// carry copies between a stream and a port, as container runtimes do: they connect to the loopback address in the pod's
// network, so a program that listens only at the pod's own address is not reached.
func (f *forwarder) carry(s io.ReadWriter, port int) error {
	conn, err := f.sandbox.Dial(port)
	if err != nil {
		return err
	}
	defer conn.Close()
	go func() {
		io.Copy(conn, s)
		conn.(*net.TCPConn).CloseWrite()
	}()
	_, err = io.Copy(s, conn)
	return err
}

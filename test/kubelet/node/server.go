package node

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"strconv"
	"time"
)

// serve answers, at an address, the API server's calls for ports, commands and logs of pods until it is closed. It asks for no
// certificate.
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
	for _, method := range []string{"POST ", "GET "} {
		mux.HandleFunc(method+"/portForward/{namespace}/{pod}", find.forward)
		mux.HandleFunc(method+"/exec/{namespace}/{pod}/{container}", find.exec)
	}
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", find.logs)
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

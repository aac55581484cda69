package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/url"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// putTime is how long one call of a client may take.
const putTime = 3 * time.Second

// access is how clients reach a cluster.
type access struct {
	endpoints []string
	authority []byte // PEM of what signs the members' certificates; nil: they have none
	user      string // empty: there are no users
	password  string
}

// connect opens a client.
func (a access) connect() (*clientv3.Client, error) {
	config := clientv3.Config{Endpoints: a.endpoints, DialTimeout: putTime, DialKeepAliveTime: 2 * time.Second,
		DialKeepAliveTimeout: 2 * time.Second, Logger: zap.NewNop(), Username: a.user, Password: a.password}
	if a.authority != nil {
		trusted, err := a.trust()
		if err != nil {
			return nil, err
		}
		config.TLS = trusted
	}
	return clientv3.New(config)
}

// trust is what a client believes: the authority, and that a member shows the name of the first endpoint. The client would ask
// for the name, or the address, of the endpoint that it dials, and members' certificates have no addresses of pods.
func (a access) trust() (*tls.Config, error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(a.authority) {
		return nil, errors.New("the authority is no certificate")
	}
	first, err := url.Parse(a.endpoints[0])
	if err != nil {
		return nil, err
	}
	verify := func(state tls.ConnectionState) error {
		between := x509.NewCertPool()
		for _, certificate := range state.PeerCertificates[1:] {
			between.AddCert(certificate)
		}
		_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{DNSName: first.Hostname(), Roots: roots,
			Intermediates: between})
		return err
	}
	return &tls.Config{InsecureSkipVerify: true, VerifyConnection: verify, MinVersion: tls.VersionTLS12}, nil
}

// member is the endpoint of one member, by the address of its pod.
func (a access) member(address string) string {
	scheme, _, _ := strings.Cut(a.endpoints[0], "://")
	return scheme + "://" + address + ":2379"
}

// leads tells whether the member at an address leads.
func (a access) leads(ctx context.Context, address string) bool {
	client, err := a.connect()
	if err != nil {
		return false
	}
	defer client.Close()
	call, cancel := context.WithTimeout(ctx, putTime)
	defer cancel()
	status, err := client.Status(call, a.member(address))
	return err == nil && status.Leader == status.Header.MemberId
}

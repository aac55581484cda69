package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/test/kubelet/plane"
)

// chartRotate changes the certificate, and then its authority: that is trusted first, then it signs, then the former one is
// trusted no more. Members read files anew by themselves. At last one of them starts anew.
func chartRotate(ctx context.Context, c *cluster) error {
	before, err := c.lives(ctx)
	if err != nil {
		return err
	}
	former, next := c.authorities[0], c.authorities[1]
	both := slices.Concat(former.PEM, next.PEM)
	for _, step := range []struct {
		signs   *plane.Authority
		trusted []byte
	}{{former, former.PEM}, {former, both}, {next, both}, {next, next.PEM}} {
		certificate, err := c.putCertificate(ctx, step.signs, step.trusted)
		if err != nil {
			return err
		}
		if err := c.shows(ctx, func(string) ([]byte, error) { return certificate, nil }); err != nil {
			return err
		}
		if err := c.progress(ctx, someWrites); err != nil {
			return err
		}
	}
	return c.restartOne(ctx, before)
}

// operatedRotate asks for another name in the certificates, which renews all of them, and then deletes the authority: another
// one is made, and the certificates of the former one go on to count.
func operatedRotate(ctx context.Context, c *cluster) error {
	before, err := c.lives(ctx)
	if err != nil {
		return err
	}
	secrets := c.plane.Client.CoreV1().Secrets(c.namespace)
	certificate := func(member string) ([]byte, error) {
		s, err := secrets.Get(ctx, member+"-tls", metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		return s.Data[corev1.TLSCertKey], nil
	}
	pods, err := c.pods(ctx)
	if err != nil {
		return err
	}
	former := map[string][]byte{}
	for _, p := range pods {
		if former[p.Name], err = certificate(p.Name); err != nil {
			return err
		}
	}
	if err := c.want(ctx, func(w *wanted) { w.host = "kv.example.com" }); err != nil {
		return err
	}
	if err := c.shows(ctx, func(member string) ([]byte, error) {
		now, err := certificate(member)
		if err == nil && bytes.Equal(now, former[member]) {
			err = errors.New("it is not renewed")
		}
		return now, err
	}); err != nil {
		return err
	}
	if err := c.loseAuthority(ctx); err != nil {
		return err
	}
	return c.restartOne(ctx, before)
}

// loseAuthority deletes the authority with its key, and waits for another one.
func (c *cluster) loseAuthority(ctx context.Context) error {
	secrets := c.plane.Client.CoreV1().Secrets(c.namespace)
	authority, err := secrets.Get(ctx, operatedName+"-authority", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if err := secrets.Delete(ctx, authority.Name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	err = until(ctx, time.Minute, "there is another authority", func() error {
		s, err := secrets.Get(ctx, authority.Name, metav1.GetOptions{})
		if err == nil && s.UID == authority.UID {
			err = errors.New("there is none")
		}
		return err
	})
	if err != nil {
		return err
	}
	return c.progress(ctx, someWrites)
}

// lives says which pods there are, and how often their containers started.
func (c *cluster) lives(ctx context.Context) (string, error) {
	pods, err := c.pods(ctx)
	if err != nil {
		return "", err
	}
	var all []string
	for _, p := range pods {
		all = append(all, fmt.Sprintf("%s %s %d", p.Name, p.UID, p.Status.ContainerStatuses[0].RestartCount))
	}
	return strings.Join(all, "; "), nil
}

// restartOne fails if a pod is another one than before, or started again; then it deletes one.
func (c *cluster) restartOne(ctx context.Context, before string) error {
	now, err := c.lives(ctx)
	if err != nil {
		return err
	}
	if now != before {
		return fmt.Errorf("members were restarted: %s were %s", now, before)
	}
	pods, err := c.pods(ctx)
	if err != nil {
		return err
	}
	p := pods[0]
	if err := c.plane.Client.CoreV1().Pods(c.namespace).Delete(ctx, p.Name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	return c.replaced(ctx, &p)
}

// shows waits until each member shows its certificate, which is given as PEM, to clients and to members.
func (c *cluster) shows(ctx context.Context, want func(member string) ([]byte, error)) error {
	return until(ctx, time.Minute, "all members show their new certificate", func() error {
		pods, err := c.pods(ctx)
		if err != nil {
			return err
		}
		for _, p := range pods {
			certificate, err := want(p.Name)
			if err != nil {
				return fmt.Errorf("%s: %w", p.Name, err)
			}
			block, _ := pem.Decode(certificate)
			if block == nil {
				return fmt.Errorf("%s: its Secret has no certificate", p.Name)
			}
			for _, port := range []string{"2379", "2380"} {
				// It is compared as a whole, so there is nothing to verify.
				dialer := &tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}}
				conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(p.Status.PodIP, port))
				if err != nil {
					return fmt.Errorf("%s: %w", p.Name, err)
				}
				shown := conn.(*tls.Conn).ConnectionState().PeerCertificates[0]
				conn.Close()
				if !bytes.Equal(shown.Raw, block.Bytes) {
					return fmt.Errorf("%s shows the former one at port %s", p.Name, port)
				}
			}
		}
		return nil
	})
}

package main

import (
	"context"
	"crypto/x509/pkix"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/test/kubelet/plane"
)

// certificateSecret is the Secret with the certificate of the chart's members, for clients and for each other.
const certificateSecret = "certificates"

var encryptedValues = []string{
	"auth.client.secureTransport=true,auth.client.existingSecret=" + certificateSecret + ",auth.client.caFilename=ca.pem",
	"auth.peer.secureTransport=true,auth.peer.existingSecret=" + certificateSecret + ",auth.peer.caFilename=ca.pem",
	"auth.peer.enableAuthentication=true",
}

// issueSecret makes the authority, the one after it, and the Secret with a certificate of the first. Clients trust both from
// the beginning.
func (c *cluster) issueSecret(ctx context.Context) error {
	for i := range c.authorities {
		directory, err := os.MkdirTemp(c.directory, c.namespace+".pki.")
		if err != nil {
			return err
		}
		if c.authorities[i], err = plane.NewAuthority(directory, "authority"); err != nil {
			return err
		}
		c.access.authority = append(c.access.authority, c.authorities[i].PEM...)
	}
	_, err := c.putCertificate(ctx, c.authorities[0], c.authorities[0].PEM)
	return err
}

// putCertificate puts a new certificate of an authority into the Secret, with the authorities that members trust. It returns
// the certificate, as PEM.
func (c *cluster) putCertificate(ctx context.Context, a *plane.Authority, trusted []byte) ([]byte, error) {
	hosts := []string{fmt.Sprintf("%s.%s.svc.cluster.local", c.set(), c.namespace)}
	for i := range replicas { // a member that connects is found by the addresses of these names
		hosts = append(hosts, fmt.Sprintf("%s.%s-headless.%s.svc.cluster.local", c.podName(i), c.set(), c.namespace))
	}
	files, err := a.Issue("members", pkix.Name{CommonName: "members"}, hosts...)
	if err != nil {
		return nil, err
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: certificateSecret}, Data: map[string][]byte{"ca.pem": trusted}}
	for name, file := range map[string]string{"cert.pem": files.Cert, "key.pem": files.Key} {
		if secret.Data[name], err = os.ReadFile(file); err != nil {
			return nil, err
		}
	}
	secrets := c.plane.Client.CoreV1().Secrets(c.namespace)
	_, err = secrets.Create(ctx, secret, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		_, err = secrets.Update(ctx, secret, metav1.UpdateOptions{})
	}
	return secret.Data["cert.pem"], err
}

// readAuthority reads, from a Secret, by what clients of an operated cluster know its members.
func (c *cluster) readAuthority(ctx context.Context, name string) error {
	return until(ctx, time.Minute, "there is an authority", func() error {
		s, err := c.plane.Client.CoreV1().Secrets(c.namespace).Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			c.access.authority = s.Data["ca.crt"]
		}
		return err
	})
}

// readPassword reads the password of root from a Secret.
func (c *cluster) readPassword(ctx context.Context, name, key string) error {
	c.rootSecret = name
	return until(ctx, time.Minute, "there is a password", func() error {
		s, err := c.plane.Client.CoreV1().Secrets(c.namespace).Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			c.access.user, c.access.password = "root", string(s.Data[key])
		}
		return err
	})
}

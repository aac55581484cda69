package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The keys of the server of S3, and the Secret of a namespace that has them as variables of the environment.
const (
	placePort   = "7070"
	placeKey    = "kubelet-key"
	placeSecret = "kubelet-secret-key"
	placeNeeds  = "s3"
)

// places is a server of S3 outside of Kubernetes, which all pods reach: versitygw, which checks signatures. It starts with the
// first bucket, and no scenario stops it.
type places struct {
	binary, directory, host string
	process                 *exec.Cmd
}

// bucket makes an empty bucket, and returns the URL of a place in it.
func (p *places) bucket(ctx context.Context, name string) (string, error) {
	if p.process == nil {
		if err := p.start(ctx); err != nil {
			return "", err
		}
	}
	url := fmt.Sprintf("s3://%s/kept?endpoint=http://%s", name, net.JoinHostPort(p.host, placePort))
	return url, os.Mkdir(filepath.Join(p.directory, name), 0o755)
}

func (p *places) start(ctx context.Context) error {
	if p.binary == "" {
		return fmt.Errorf("it needs -s3 PATH")
	}
	if err := os.MkdirAll(p.directory, 0o755); err != nil {
		return err
	}
	log, err := os.Create(p.directory + ".log")
	if err != nil {
		return err
	}
	defer log.Close()
	address := net.JoinHostPort(p.host, placePort)
	process := exec.Command(p.binary, "--port", address, "--region", "us-east-1", "--quiet", "posix", p.directory)
	process.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+placeKey, "ROOT_SECRET_KEY="+placeSecret)
	process.Stdout, process.Stderr = log, log
	if err := process.Start(); err != nil {
		return err
	}
	p.process = process
	return until(ctx, time.Minute, "the server of S3 listens", func() error {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			return err
		}
		return conn.Close()
	})
}

func (p *places) stop() {
	if p.process != nil {
		_ = p.process.Process.Kill()
		_ = p.process.Wait()
	}
}

// newPlace makes a bucket for the cluster, and the Secret with which members write to it.
func (c *cluster) newPlace(ctx context.Context) (string, error) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: placeNeeds}, StringData: map[string]string{
		"AWS_ACCESS_KEY_ID": placeKey, "AWS_SECRET_ACCESS_KEY": placeSecret}}
	if _, err := c.plane.Client.CoreV1().Secrets(c.namespace).Create(ctx, secret, metav1.CreateOptions{}); err != nil {
		return "", err
	}
	return c.places.bucket(ctx, "backup-"+c.namespace)
}

package keysource

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"k8s.io/kms/apis/v2"

	"github.com/quorate/quorate/internal/base/printable"
	"github.com/quorate/quorate/internal/storage/atrest"
)

// KMSProvider is the name of a KMS.
const KMSProvider = "kms"

// How long a plug-in may take. One that is started beside this process may come later than it.
const (
	callTimeout = 5 * time.Second
	patience    = 30 * time.Second
	retryPause  = 250 * time.Millisecond
)

// The bounds of what a plug-in answers, from its interface.
const (
	maxCiphertext  = 1 << 10
	maxKeyID       = 1 << 10
	maxAnnotations = 32 << 10
	maxAnswer      = 64 << 10
)

// KMS is a plug-in of version 2 of Kubernetes' interface to key services, at a Unix socket.
type KMS struct {
	target         string
	call, patience time.Duration
}

// NewKMS returns the plug-in at an address, unix:///PATH. It is asked when it is needed.
func NewKMS(address string) (*KMS, error) {
	path, ok := strings.CutPrefix(address, "unix://")
	if !ok || !filepath.IsAbs(path) {
		return nil, errors.New("write unix:///PATH, the socket of the plug-in")
	}
	return &KMS{target: "unix://" + path, call: callTimeout, patience: patience}, nil
}

// Name implements atrest.Provider.
func (*KMS) Name() string { return KMSProvider }

// ask calls the plug-in until it answers, as long as it may still come: it is not there, or does not answer.
func (k *KMS) ask(ctx context.Context, call func(context.Context, v2.KeyManagementServiceClient) error) error {
	ctx, cancel := context.WithTimeout(ctx, k.patience)
	defer cancel()
	conn, err := grpc.NewClient(k.target, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithAuthority("localhost"), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer)))
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // nothing was left on it
	client := v2.NewKeyManagementServiceClient(conn)
	for {
		one, done := context.WithTimeout(ctx, k.call)
		err := call(one, client)
		done()
		if err == nil {
			return nil
		}
		if code := status.Code(err); code != codes.Unavailable && code != codes.DeadlineExceeded {
			return fmt.Errorf("the KMS plug-in at %s refused: %s", k.target, status.Convert(err).Message())
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the KMS plug-in at %s did not answer within %v: start it, and see its log: %s", k.target,
				k.patience, status.Convert(err).Message())
		case <-time.After(retryPause):
		}
	}
}

func requestID() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails
	return hex.EncodeToString(id[:])
}

// Wrap implements atrest.Provider.
func (k *KMS) Wrap(ctx context.Context, key []byte) (w atrest.Wrapped, err error) {
	var answer *v2.EncryptResponse
	err = k.ask(ctx, func(ctx context.Context, client v2.KeyManagementServiceClient) (err error) {
		answer, err = client.Encrypt(ctx, &v2.EncryptRequest{Plaintext: key, Uid: requestID()})
		return err
	})
	if err != nil {
		return w, err
	}
	annotations := 0
	for name, value := range answer.GetAnnotations() {
		annotations += len(name) + len(value)
	}
	if n := len(answer.GetCiphertext()); n == 0 || n > maxCiphertext || len(answer.GetKeyId()) == 0 ||
		len(answer.GetKeyId()) > maxKeyID || annotations > maxAnnotations {
		return w, fmt.Errorf("the KMS plug-in at %s answered what its interface forbids: %d bytes, a key id of %d bytes, "+
			"annotations of %d bytes", k.target, n, len(answer.GetKeyId()), annotations)
	}
	w = atrest.Wrapped{KeyID: answer.GetKeyId(), Annotations: answer.GetAnnotations(), Ciphertext: answer.GetCiphertext()}
	return w, nil
}

// Unwrap implements atrest.Provider.
func (k *KMS) Unwrap(ctx context.Context, w *atrest.Wrapped) ([]byte, error) {
	var answer *v2.DecryptResponse
	err := k.ask(ctx, func(ctx context.Context, client v2.KeyManagementServiceClient) (err error) {
		answer, err = client.Decrypt(ctx, &v2.DecryptRequest{
			Ciphertext: w.Ciphertext, KeyId: w.KeyID, Annotations: w.Annotations, Uid: requestID(),
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("key %q of the key service: %w", w.KeyID, err)
	}
	return answer.GetPlaintext(), nil
}

// healthy is what a plug-in says of itself if nothing is wrong.
const healthy = "ok"

// Current implements Provider.
func (k *KMS) Current(ctx context.Context) (string, error) {
	var answer *v2.StatusResponse
	err := k.ask(ctx, func(ctx context.Context, client v2.KeyManagementServiceClient) (err error) {
		answer, err = client.Status(ctx, &v2.StatusRequest{})
		return err
	})
	switch {
	case err != nil:
		return "", err
	case answer.GetHealthz() != healthy:
		return "", fmt.Errorf("the KMS plug-in at %s says that it is not well: %s", k.target,
			printable.Text(answer.GetHealthz(), mostHealth))
	case len(answer.GetKeyId()) > maxKeyID:
		return "", fmt.Errorf("the KMS plug-in at %s named a key by %d bytes", k.target, len(answer.GetKeyId()))
	}
	return answer.GetKeyId(), nil
}

// mostHealth bounds what a plug-in says of itself, in characters.
const mostHealth = 200

package login

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/quorate/quorate/internal/env"
)

// methods are etcd's: all of the library's but "none".
var methods = map[string]jwt.SigningMethod{
	"RS256": jwt.SigningMethodRS256, "RS384": jwt.SigningMethodRS384, "RS512": jwt.SigningMethodRS512,
	"PS256": jwt.SigningMethodPS256, "PS384": jwt.SigningMethodPS384, "PS512": jwt.SigningMethodPS512,
	"ES256": jwt.SigningMethodES256, "ES384": jwt.SigningMethodES384, "ES512": jwt.SigningMethodES512,
	"HS256": jwt.SigningMethodHS256, "HS384": jwt.SigningMethodHS384, "HS512": jwt.SigningMethodHS512,
	"EdDSA": jwt.SigningMethodEdDSA,
}

var (
	errNoKey     = errors.New("neither a public nor a private key is given")
	errOtherKey  = errors.New("the public key is not that of the private key")
	errWrongKind = errors.New("the key is not one of the sign-method")
)

// lookInterval is how long changed files may stay unnoticed.
const lookInterval = time.Second

// pair is the keys of a member. sign is nil if it has only a public one.
type pair struct{ verify, sign any }

// keyFiles is the keys in some files, read again when one of them has changed.
type keyFiles struct {
	method          jwt.SigningMethod
	public, private string // paths; empty: none
	clock           env.Clock
	logger          *slog.Logger

	mu     sync.Mutex
	looked time.Time
	seen   [2]fs.FileInfo // when the files were last read, whether that went well or not
	keys   pair           // the last that could be read
}

// openKeys reads the files for the first time, which must go well.
func openKeys(method jwt.SigningMethod, public, private string, clock env.Clock, logger *slog.Logger) (*keyFiles, error) {
	k := &keyFiles{method: method, public: public, private: private, clock: clock, logger: logger, looked: clock.Now()}
	k.seen = k.look() // before reading: a change in between is found at the next look
	var err error
	k.keys, err = k.read()
	return k, err
}

// get returns the keys. Files that cannot be used, such as only one of two that belong together, change nothing.
func (k *keyFiles) get() pair {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.clock.Now()
	if now.Sub(k.looked) < lookInterval {
		return k.keys
	}
	k.looked = now
	seen := k.look()
	if sameFile(seen[0], k.seen[0]) && sameFile(seen[1], k.seen[1]) {
		return k.keys
	}
	k.seen = seen
	keys, err := k.read()
	if err != nil {
		k.logger.Warn("changed keys of tokens cannot be used; those read before stay in force", "err", err)
		return k.keys
	}
	k.logger.Info("read changed keys of tokens")
	k.keys = keys
	return keys
}

func (k *keyFiles) look() (seen [2]fs.FileInfo) {
	for i, path := range []string{k.public, k.private} {
		if info, err := os.Stat(path); err == nil && path != "" {
			seen[i] = info
		}
	}
	return seen
}

// sameFile compares identity too: Kubernetes replaces secrets by turning a symbolic link.
func sameFile(a, b fs.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}

func (k *keyFiles) read() (pair, error) {
	public, err := readFile("pub-key", k.public)
	if err != nil {
		return pair{}, err
	}
	private, err := readFile("priv-key", k.private)
	if err != nil {
		return pair{}, err
	}
	if _, ok := k.method.(*jwt.SigningMethodHMAC); ok {
		if len(private) == 0 {
			return pair{}, fmt.Errorf("priv-key: %w", errNoKey)
		}
		return pair{verify: private, sign: private}, nil
	}
	keys, err := parseKeys(k.method, public, private)
	if err != nil {
		return pair{}, err
	}
	return keys, tryKeys(k.method, keys)
}

func readFile(option, path string) ([]byte, error) {
	if path == "" {
		return nil, nil
	}
	raw, err := os.ReadFile(path)
	var inner *fs.PathError
	if errors.As(err, &inner) {
		// Without its type: who reads it would advise about the data directory's permissions.
		return nil, fmt.Errorf("%s %s: %v", option, path, inner.Err)
	}
	return raw, err
}

func parseKeys(method jwt.SigningMethod, publicPEM, privatePEM []byte) (keys pair, err error) {
	var public interface{ Equal(crypto.PublicKey) bool }
	if len(publicPEM) > 0 {
		switch method.(type) {
		case *jwt.SigningMethodECDSA:
			public, err = parsed[*ecdsa.PublicKey](jwt.ParseECPublicKeyFromPEM(publicPEM))
		case *jwt.SigningMethodEd25519:
			public, err = parsed[ed25519.PublicKey](jwt.ParseEdPublicKeyFromPEM(publicPEM))
		default:
			public, err = parsed[*rsa.PublicKey](jwt.ParseRSAPublicKeyFromPEM(publicPEM))
		}
		if err != nil {
			return pair{}, fmt.Errorf("pub-key: %w", err)
		}
		keys.verify = public
	}
	if len(privatePEM) > 0 {
		var private crypto.Signer
		switch method.(type) {
		case *jwt.SigningMethodECDSA:
			private, err = parsed[*ecdsa.PrivateKey](jwt.ParseECPrivateKeyFromPEM(privatePEM))
		case *jwt.SigningMethodEd25519:
			private, err = parsed[ed25519.PrivateKey](jwt.ParseEdPrivateKeyFromPEM(privatePEM))
		default:
			private, err = parsed[*rsa.PrivateKey](jwt.ParseRSAPrivateKeyFromPEM(privatePEM))
		}
		switch {
		case err != nil:
			return pair{}, fmt.Errorf("priv-key: %w", err)
		case public != nil && !public.Equal(private.Public()):
			return pair{}, errOtherKey
		}
		keys = pair{verify: private.Public(), sign: private}
	}
	if keys.verify == nil {
		return pair{}, errNoKey
	}
	return keys, nil
}

// parsed returns what a parser of the library returned, as the type that it is.
func parsed[T any](key any, err error) (T, error) {
	typed, ok := key.(T)
	if err == nil && !ok {
		err = errWrongKind
	}
	return typed, err
}

// tryKeys refuses keys that the method cannot use, such as a curve of another size, before a token needs them.
func tryKeys(method jwt.SigningMethod, keys pair) error {
	if curve, ok := method.(*jwt.SigningMethodECDSA); ok {
		if key, ok := keys.verify.(*ecdsa.PublicKey); !ok || key.Curve.Params().BitSize != curve.CurveBits {
			return errWrongKind
		}
	}
	if keys.sign == nil {
		return nil
	}
	const text = "trial"
	signature, err := method.Sign(text, keys.sign)
	if err != nil {
		return fmt.Errorf("priv-key: %w", err)
	}
	return method.Verify(text, signature, keys.verify)
}

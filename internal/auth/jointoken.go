package auth

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
)

// MaxJoinTokens is how many join tokens there may be at once, those that have expired left out.
const MaxJoinTokens = 100

// MaxTokenUses is how many newcomers one join token may admit.
const MaxTokenUses = 100

const (
	tokenIDBytes     = 4  // as 8 hex digits
	tokenSecretBytes = 16 // as 32 hex digits
)

// JoinToken lets processes join that no operator has added, while authentication is enabled. It must not be modified.
type JoinToken struct {
	ID      string   // 8 hex digits; no secret
	Hash    [32]byte // SHA-256 of the secret
	Expires int64    // Unix milliseconds, by the clock of the leader
	Uses    int      // how many newcomers it admits
	Owner   string   // the user who made it; empty while authentication was disabled
	// UsedBy has the newcomers that were admitted, in that order: see Newcomer.
	UsedBy [][32]byte
}

// Newcomer names a process that joins by its peer URLs, in any order. If it asks again, it is the same newcomer.
func Newcomer(peerURLs []string) [32]byte {
	return sha256.Sum256([]byte(strings.Join(slices.Sorted(slices.Values(peerURLs)), "\x00")))
}

// TokenText is what the owner of a join token is given, and a process shows that joins: ID.secret, in hex.
func TokenText(id, secret []byte) string {
	return hex.EncodeToString(id) + "." + hex.EncodeToString(secret)
}

// ParseToken takes apart what a process shows that joins.
func ParseToken(text string) (id string, hash [32]byte, err error) {
	id, secret, _ := strings.Cut(text, ".")
	bits, err := hex.DecodeString(secret)
	if err != nil || len(bits) != tokenSecretBytes || !goodTokenID(id) {
		return "", hash, ErrTokenInvalid
	}
	return id, sha256.Sum256(bits), nil
}

// NewToken makes a token and its text of tokenIDBytes and tokenSecretBytes random bytes that random fills in.
func NewToken(random func([]byte)) (token JoinToken, text string) {
	bits := make([]byte, tokenIDBytes+tokenSecretBytes)
	random(bits)
	id, secret := bits[:tokenIDBytes], bits[tokenIDBytes:]
	return JoinToken{ID: hex.EncodeToString(id), Hash: sha256.Sum256(secret)}, TokenText(id, secret)
}

func goodTokenID(id string) bool {
	bits, err := hex.DecodeString(id)
	return err == nil && len(bits) == tokenIDBytes && strings.ToLower(id) == id
}

func (t *JoinToken) usedBy(newcomer [32]byte) bool { return slices.Contains(t.UsedBy, newcomer) }

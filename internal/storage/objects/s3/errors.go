package s3

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/minio/minio-go/v7"

	"github.com/quorate/quorate/internal/base/printable"
	"github.com/quorate/quorate/internal/storage/objects"
)

// mostWords is how many characters of a server's own words an error has.
const mostWords = 200

// codes are those of S3 and of servers that speak its protocol.
var codes = map[string]error{
	"NoSuchKey":                          objects.ErrNotFound,
	"NoSuchUpload":                       objects.ErrBusy, // the upload ended meanwhile: begin anew
	"NoSuchBucket":                       objects.ErrNoPlace,
	"InvalidBucketName":                  objects.ErrNoPlace,
	"PreconditionFailed":                 objects.ErrExists,
	"ConditionalRequestConflict":         objects.ErrBusy,
	"OperationAborted":                   objects.ErrBusy,
	"AccessDenied":                       objects.ErrDenied,
	"AllAccessDisabled":                  objects.ErrDenied,
	"AccountProblem":                     objects.ErrDenied,
	"MethodNotAllowed":                   objects.ErrDenied,
	"ObjectLocked":                       objects.ErrDenied,
	"InvalidAccessKeyId":                 objects.ErrCredentials,
	"SignatureDoesNotMatch":              objects.ErrCredentials,
	"XAdminUserNotFound":                 objects.ErrCredentials, // versitygw's word for a key that it does not know
	"InvalidToken":                       objects.ErrCredentials,
	"ExpiredToken":                       objects.ErrCredentials,
	"TokenRefreshRequired":               objects.ErrCredentials,
	"InvalidSecurity":                    objects.ErrCredentials,
	"MissingSecurityHeader":              objects.ErrCredentials,
	"PermanentRedirect":                  objects.ErrRegion,
	"TemporaryRedirect":                  objects.ErrRegion,
	"Redirect":                           objects.ErrRegion,
	"InvalidRegion":                      objects.ErrRegion,
	"IllegalLocationConstraintException": objects.ErrRegion,
	"RequestTimeTooSkewed":               objects.ErrClock,
	"RequestExpired":                     objects.ErrClock,
	"SlowDown":                           objects.ErrBusy,
	"SlowDownRead":                       objects.ErrBusy,
	"SlowDownWrite":                      objects.ErrBusy,
	"Throttling":                         objects.ErrBusy,
	"ThrottlingException":                objects.ErrBusy,
	"TooManyRequests":                    objects.ErrBusy,
	"RequestLimitExceeded":               objects.ErrBusy,
	"ServiceUnavailable":                 objects.ErrBusy,
	"InternalError":                      objects.ErrBusy,
	"RequestTimeout":                     objects.ErrBusy,
	"BadDigest":                          objects.ErrBusy, // the bytes changed on the way
	"XAmzContentSHA256Mismatch":          objects.ErrBusy,
	"IncompleteBody":                     objects.ErrBusy,
	"QuotaExceeded":                      objects.ErrFull,
	"InsufficientStorage":                objects.ErrFull,
	"XMinioStorageFull":                  objects.ErrFull,
	"XMinioAdminBucketQuotaExceeded":     objects.ErrFull,
}

// statuses are for answers whose code says nothing.
var statuses = map[int]error{
	http.StatusMovedPermanently:    objects.ErrRegion,
	http.StatusFound:               objects.ErrRegion,
	http.StatusTemporaryRedirect:   objects.ErrRegion,
	http.StatusPermanentRedirect:   objects.ErrRegion,
	http.StatusUnauthorized:        objects.ErrCredentials,
	http.StatusForbidden:           objects.ErrDenied,
	http.StatusNotFound:            objects.ErrNotFound,
	http.StatusConflict:            objects.ErrBusy,
	http.StatusPreconditionFailed:  objects.ErrExists,
	http.StatusTooManyRequests:     objects.ErrBusy,
	http.StatusRequestTimeout:      objects.ErrBusy,
	http.StatusInternalServerError: objects.ErrBusy,
	http.StatusBadGateway:          objects.ErrBusy,
	http.StatusServiceUnavailable:  objects.ErrBusy,
	http.StatusGatewayTimeout:      objects.ErrBusy,
	http.StatusInsufficientStorage: objects.ErrFull,
}

// fault is an error of a place as callers tell it apart, in bounded words.
type fault struct {
	kind  error // may be nil
	words string
}

// Error implements error.
func (f *fault) Error() string {
	if f.kind == nil {
		return f.words
	}
	return f.kind.Error() + ": " + f.words
}

// Unwrap gives the kind.
func (f *fault) Unwrap() error { return f.kind }

// tell turns an error of the library into one that callers tell apart.
func tell(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if answer, ok := errors.AsType[minio.ErrorResponse](err); ok {
		return tellAnswer(answer)
	}
	for _, own := range []error{errStalled, errTooLarge, errNoAnswer, errBody, ErrNoCredentials} {
		if errors.Is(err, own) {
			return unwrapURL(err)
		}
	}
	words := printable.Text(unwrapURL(err).Error(), mostWords)
	if isPlain(err) {
		return &fault{kind: objects.ErrNoTLS, words: words}
	}
	if isTLS(err) {
		return &fault{kind: objects.ErrTLS, words: words}
	}
	if _, ok := errors.AsType[*url.Error](err); ok || isNetwork(err) {
		return &fault{kind: objects.ErrUnreachable, words: words}
	}
	return &fault{kind: objects.ErrBusy, words: "an answer that is none of S3: " + words}
}

// unwrapURL drops method and URL before the words of an error, which are the place's and known.
func unwrapURL(err error) error {
	if of, ok := errors.AsType[*url.Error](err); ok {
		return of.Err
	}
	return err
}

func isNetwork(err error) bool {
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF)
}

func isTLS(err error) bool {
	var name x509.HostnameError
	var authority x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	var verification *tls.CertificateVerificationError
	return errors.As(err, &name) || errors.As(err, &authority) || errors.As(err, &invalid) || errors.As(err, &verification) ||
		strings.Contains(err.Error(), "tls: ")
}

// isPlain tells that the server answered a TLS handshake with something else.
func isPlain(err error) bool {
	var record tls.RecordHeaderError
	return errors.As(err, &record) || strings.Contains(err.Error(), "server gave HTTP response to HTTPS client")
}

func tellAnswer(answer minio.ErrorResponse) error {
	kind, known := codes[answer.Code]
	if !known {
		kind = statuses[answer.StatusCode]
	}
	// AWS tells the region that a signature should have had.
	if answer.Code == "AuthorizationHeaderMalformed" || answer.Code == "InvalidArgument" && answer.Region != "" {
		kind = objects.ErrCredentials
		if answer.Region != "" {
			kind = objects.ErrRegion
		}
	}
	words := printable.Text(fmt.Sprintf("%s (%s, status %d)", answer.Message, answer.Code, answer.StatusCode), mostWords)
	if errors.Is(kind, objects.ErrRegion) && answer.Region != "" {
		words = fmt.Sprintf("it is in region %s: %s", printable.Text(answer.Region, 40), words)
	}
	return &fault{kind: kind, words: words}
}

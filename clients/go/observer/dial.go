// Package observer looks at the terminal of a Wheelhouse worker: exact bytes, acknowledged as they
// are taken.
package observer

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
)

const messageBytesMax = 4 * 1024 * 1024

// Dial connects to one plane as one identity: TLS both ways, and only that plane's certificate will
// do. It dials lazily: the first call makes the connection. The endpoint is host:port.
func Dial(endpoint, plane string, id Identity) (*grpc.ClientConn, error) {
	pair, err := tls.X509KeyPair(id.Certificate, id.Key)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(id.Root) {
		return nil, errors.New("the root's certificate is not PEM")
	}
	return grpc.Dial(endpoint,
		grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{
			Certificates: []tls.Certificate{pair},
			RootCAs:      roots,
			ServerName:   plane + ".wheelhouse.internal",
			MinVersion:   tls.VersionTLS12,
		})),
		// A retried act is a second act.
		grpc.WithDisableRetry(),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{
			Time:                10 * time.Second,
			Timeout:             5 * time.Second,
			PermitWithoutStream: true,
		}),
		grpc.WithDefaultCallOptions(
			grpc.MaxCallRecvMsgSize(messageBytesMax),
			grpc.ForceCodec(codec{}),
		),
	)
}

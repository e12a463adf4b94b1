package record

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"

	"nize/store/kv"
	"nize/store/project"
)

var _ project.Servers = Projects{}

// The stored value of a temporary server is the project's id followed by the record.

// PutTemporaryServer implements [project.Servers].
func (p Projects) PutTemporaryServer(ctx context.Context, of, name string, record json.RawMessage) error {
	return p.db.Update(ctx, "storing a temporary server", func(tx kv.Tx) error {
		if err := kv.CheckID("temporary server", name); err != nil {
			return err
		}
		if _, err := tx.Get(projects.Bucket, []byte(of)); err != nil {
			return err
		}
		return tx.PutSealed("temporary_servers", []byte(name), slices.Concat(ofProject(of, ""), record))
	})
}

// GetTemporaryServer implements [project.Servers].
func (p Projects) GetTemporaryServer(ctx context.Context, name string) (record json.RawMessage, err error) {
	err = p.db.View(ctx, "reading a temporary server", func(r kv.Reader) error {
		whole, err := r.Unseal("temporary_servers", []byte(name))
		if err != nil {
			return err
		}
		of, rest, _ := bytes.Cut(whole, []byte{0})
		record = rest
		_, err = r.Get(projects.Bucket, of)
		return err
	})
	return record, err
}

// pruneTemporaryServers deletes the servers created before an id.
func pruneTemporaryServers(tx kv.Tx, oldest string) error {
	var gone [][]byte
	err := tx.Each("temporary_servers", nil, nil, func(k, _ []byte) error {
		id := string(k[bytes.LastIndexByte(k, '.')+1:])
		if len(gone) < maxPruned && id[:min(10, len(id))] < oldest {
			gone = append(gone, slices.Clone(k))
		}
		return nil
	})
	for _, k := range gone {
		err = errors.Join(err, tx.Delete("temporary_servers", k))
	}
	return err
}

// temporaryServersOf returns the keys of a project's servers.
func temporaryServersOf(tx kv.Tx, of string) (keys [][]byte, err error) {
	var all [][]byte
	err = tx.Each("temporary_servers", nil, nil, func(k, _ []byte) error {
		all = append(all, slices.Clone(k))
		return nil
	})
	for _, k := range all {
		if err != nil {
			return nil, err
		}
		var whole []byte
		if whole, err = tx.Unseal("temporary_servers", k); err == nil && bytes.HasPrefix(whole, ofProject(of, "")) {
			keys = append(keys, k)
		}
	}
	return keys, err
}

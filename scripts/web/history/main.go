// Command history adds long conversations to the database of a stopped nized, for the tests
// of the chat page.
//
// history DATA_DIR USER N… creates one of N messages each and prints their ids. An N of
// "usage" books model calls instead: three in a conversation of the last week, and two in
// the week before.
package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"nize/store"
	"nize/store/database"
	"nize/store/kv"
	"nize/store/record"
	"nize/store/seal"
)

func main() {
	if err := run(context.Background(), os.Args[1], os.Args[2], os.Args[3:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, dir, user string, counts []string) error {
	master, err := seal.Open(filepath.Join(dir, "nize.key"), store.Secret{})
	if err != nil {
		return err
	}
	db, err := database.Open(ctx, database.Options{Path: filepath.Join(dir, "nize.db"), Master: master, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	for _, count := range counts {
		if count == "usage" {
			id, err := spend(ctx, db, user)
			if err != nil {
				return err
			}
			fmt.Println(id)
			continue
		}
		n, err := strconv.Atoi(count)
		if err != nil {
			return err
		}
		id, err := converse(ctx, db, store.Caller{User: user, Name: "root", Surface: store.OnWeb}, n)
		if err != nil {
			return err
		}
		fmt.Println(id)
	}
	return db.Close()
}

// spend books model calls of two weeks.
func spend(ctx context.Context, db *database.DB, user string) (string, error) {
	id, err := converse(ctx, db, store.Caller{User: user, Name: "root", Surface: store.OnWeb}, 2)
	if err != nil {
		return "", err
	}
	for i, days := range []int{0, 3, 5, 8, 12} {
		s := store.Spend{
			ID: fmt.Sprintf("s%d", i), At: time.Now().AddDate(0, 0, -days), User: user, Team: "local", Thread: id, Agent: "default",
			Provider: "parrots", Model: "parrot", Prompt: 1000, Completion: 100, Priced: true, MicroUSD: 500_000,
		}
		if err := db.AddSpend(ctx, s); err != nil {
			return "", err
		}
	}
	return id, nil
}

// converse creates a conversation of n messages, of which every other one is an answer in
// Markdown.
func converse(ctx context.Context, db *database.DB, by store.Caller, n int) (string, error) {
	id := store.NewID(time.Now())
	th := store.Thread{ID: id, User: by.User, Address: store.Address{Surface: store.OnWeb, Thread: id}, Title: fmt.Sprintf("%d messages", n), Named: true}
	if err := db.PutThread(ctx, by, th); err != nil {
		return "", err
	}
	// In one transaction, in the stored form of turns: ten thousand of them, each durable
	// by itself, take half a minute.
	return id, db.Update(ctx, "storing a conversation", func(tx kv.Tx) error {
		for i := range n {
			t := store.Turn{Thread: id, N: i, Role: store.FromUser, By: by, Text: fmt.Sprintf("Question %d of many?", i+1), At: tx.Now()}
			if i%2 == 1 {
				t.Role, t.By, t.Re = store.FromModel, store.Caller{}, i-1
				t.Text = fmt.Sprintf("# Answer %d\n\nIt has **several** blocks:\n\n- one\n- two with `code`\n\n| a | b |\n| --- | --- |\n| %d | 2 |\n\nAnd [a link](https://example.org/%d).", i+1, i, i)
			}
			head, err := json.Marshal(record.OfTurn(t))
			if err != nil {
				return err
			}
			if err := tx.Put("turns", binary.BigEndian.AppendUint64([]byte(id+"\x00"), uint64(i)), record.Pack(head, nil)); err != nil {
				return err
			}
		}
		return nil
	})
}

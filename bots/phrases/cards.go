package phrases

// withCards adds the words of the page's cards, results and notifications, in one of
// their two forms.
func withCards(form int, all map[Key]string) map[Key]string {
	for key, forms := range cards {
		all[key] = forms[form]
	}
	return all
}

// cards are those words in simplified and in traditional Chinese.
var cards = map[Key][2]string{
	"(needed)": {"（必填）", "（必填）"},
	"All of them run together once each card was on the screen, whole.": {"每张卡片都完整显示过之后，才能一起运行。", "每張卡片都完整顯示過之後，才能一起執行。"},
	"Cancel with a reason":                     {"取消并说明原因", "取消並說明原因"},
	"Cancel with this reason":                  {"以此原因取消", "以此原因取消"},
	"For others to decide":                     {"由其他人决定", "由其他人決定"},
	"Leave out":                                {"去掉", "去掉"},
	"Nothing was run: see what is said above.": {"没有运行：请看上面的说明。", "沒有執行：請看上面的說明。"},
	"Notifications: off":                       {"通知：关", "通知：關"},
	"Notifications: on":                        {"通知：开", "通知：開"},
	"Raw":                                      {"原文", "原文"},
	"Run all {n}":                              {"全部运行（{n}）", "全部執行（{n}）"},
	"Show more: {n} of {all} characters":       {"显示更多：{n}/{all} 个字符", "顯示更多：{n}/{all} 個字元"},
	"Show more: {n} of {all} lines":            {"显示更多：{n}/{all} 行", "顯示更多：{n}/{all} 行"},
	"The form shows what was there before: the JSON beside it can’t be read.": {"表单显示的是之前的内容：旁边的 JSON 无法读取。", "表單顯示的是之前的內容：旁邊的 JSON 無法讀取。"},
	"This browser does not allow them here.":                                  {"此浏览器不允许在这里发送通知。", "此瀏覽器不允許在這裡傳送通知。"},
	"This call is cancelled, and such calls are refused from now on.":         {"这个调用会被取消，以后这样的调用会被拒绝。", "這個呼叫會被取消，以後這樣的呼叫會被拒絕。"},
	"This call is run, and such calls run without asking from now on.":        {"这个调用会运行，以后这样的调用不再询问。", "這個呼叫會執行，以後這樣的呼叫不再詢問。"},
	"This is no JSON: line {line}, column {column}":                           {"这不是有效的 JSON：第 {line} 行，第 {column} 列", "這不是有效的 JSON：第 {line} 行，第 {column} 列"},
	"This is no value yet.":                                                   {"这还不是有效的值。", "這還不是有效的值。"},
	"This is the beginning; the file has all {n} bytes.":                      {"这只是开头；文件包含全部 {n} 个字节。", "這只是開頭；檔案包含全部 {n} 個位元組。"},
	"Why not? The model reads it.":                                            {"为什么不？模型会读到。", "為什麼不？模型會讀到。"},
	"With what is not seen in it:":                                            {"包含看不见的字符：", "包含看不見的字元："},
	"no":                                                                      {"否", "否"},
	"yes":                                                                     {"是", "是"},
	"one more: {name}":                                                        {"再加一个：{name}", "再加一個：{name}"},
	"{n} characters":                                                          {"{n} 个字符", "{n} 個字元"},
	"invalid decision: call %s is of another step":                            {"无效的决定：调用 %s 属于另一步", "無效的決定：呼叫 %s 屬於另一步"},
	"invalid decision: say which cards were on the screen":                    {"无效的决定：请说明屏幕上显示过哪些卡片", "無效的決定：請說明螢幕上顯示過哪些卡片"},
	"a result of call %q not found":                                           {"找不到调用 %q 的结果", "找不到呼叫 %q 的結果"},
}

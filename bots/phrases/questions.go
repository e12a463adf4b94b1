package phrases

// questions are the texts about what servers ask, and about their tasks, in simplified
// and traditional Chinese.
var questions = map[Key][2]string{
	"this question has no form: answer it without values":                             {"此问题没有表单：请不带值作答", "此問題沒有表單：請不帶值作答"},
	"the server asks to open an address that is none":                                 {"服务器要求打开的地址不是有效地址", "伺服器要求開啟的位址不是有效位址"},
	"the server asks to open an address that is not https":                            {"服务器要求打开的地址不是 https", "伺服器要求開啟的位址不是 https"},
	"the server asks to open an address with a user name, which hides its host":       {"服务器要求打开的地址带有用户名，这会掩盖其主机", "伺服器要求開啟的位址帶有使用者名稱，這會掩蓋其主機"},
	"the server asks to open an address of %d bytes, and it may have %d":              {"服务器要求打开的地址有 %d 字节，最多可有 %d 字节", "伺服器要求開啟的位址有 %d 位元組，最多可有 %d 位元組"},
	"the server asks to open an address with characters that are not in one":          {"服务器要求打开的地址含有地址中不允许的字符", "伺服器要求開啟的位址含有位址中不允許的字元"},
	"%s: %s: the outcome is unknown; look before you run it again":                    {"%s：%s：结果未知；再次运行前请先查看", "%s：%s：結果未知；再次執行前請先查看"},
	"%s asks for more input while it runs (%s), which nize does not offer to servers": {"%s 在运行时要求更多输入（%s），而 nize 不向服务器提供", "%s 在執行時要求更多輸入（%s），而 nize 不向伺服器提供"},
	"%s asked something: %s":                               {"%s 提出了问题：%s", "%s 提出了問題：%s"},
	"%s: its task was completed without a result":          {"%s：其任务已完成，但没有结果", "%s：其任務已完成，但沒有結果"},
	"%s: its server cancelled the task":                    {"%s：其服务器取消了任务", "%s：其伺服器取消了任務"},
	"%s: the server's result is %s":                        {"%s：服务器的结果是 %s", "%s：伺服器的結果是 %s"},
	"the call is being cancelled":                          {"调用正在被取消", "呼叫正在被取消"},
	"the answer must be a JSON object":                     {"答复必须是 JSON 对象", "答覆必須是 JSON 物件"},
	"the answer is not valid JSON: %v":                     {"答复不是有效的 JSON：%v", "答覆不是有效的 JSON：%v"},
	"%q is no field of the form":                           {"%q 不是表单的字段", "%q 不是表單的欄位"},
	"must be a date such as 2026-11-27":                    {"必须是日期，例如 2026-11-27", "必須是日期，例如 2026-11-27"},
	"must be a date and time such as 2026-11-27T15:04:00Z": {"必须是日期和时间，例如 2026-11-27T15:04:00Z", "必須是日期和時間，例如 2026-11-27T15:04:00Z"},
	"must be an address such as https://example.com/":      {"必须是地址，例如 https://example.com/", "必須是位址，例如 https://example.com/"},
	"must be an email address":                             {"必须是电子邮件地址", "必須是電子郵件地址"},
	"nize doesn't ask for secrets in a form, and %q looks like one; store it instead, and have the server read it: nizectl credentials set": {"nize 不用表单向任何人索要机密，而 %q 看起来是机密；请改为保存它，让服务器读取：nizectl credentials set", "nize 不用表單向任何人索取機密，而 %q 看起來是機密；請改為儲存它，讓伺服器讀取：nizectl credentials set"},
	"the server asks for what no form can be made of: the schema of a question is an object of texts, numbers, booleans and choices":        {"服务器要求的内容无法做成表单：问题的架构是由文本、数字、布尔值和选项组成的对象", "伺服器要求的內容無法做成表單：問題的結構描述是由文字、數字、布林值和選項組成的物件"},
}
